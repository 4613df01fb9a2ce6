// Gathers one instruction set's functions into its table.
#include "base/simd.h"
#include "kernels/pointwise/engine.h"

extern const TorTileFn TOR_KERNEL(tor_pointwise_f32)[TOR_TILE_FN_COUNT][8];
extern const TorTileFn TOR_KERNEL(tor_pointwise_plain_any)[TOR_FN_COUNT][TOR_DTYPE_COUNT];
extern const TorTileFn TOR_KERNEL(tor_pointwise_cast_any)[TOR_DTYPE_COUNT][TOR_DTYPE_COUNT];
extern const TorPartialFn TOR_KERNEL(tor_reduce_partial_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
extern const TorColumnFn TOR_KERNEL(tor_reduce_column_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
void TOR_KERNEL(tor_pointwise_load_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_pointwise_load_bf16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_pointwise_store_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_pointwise_store_bf16)(void *, const void *, const void *, const void *,
                                          int64_t);
void TOR_KERNEL(tor_pointwise_round_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_pointwise_round_bf16)(void *, const void *, const void *, const void *,
                                          int64_t);
void TOR_KERNEL(tor_reduce_columns_f32)(void *, const void *, int64_t, int64_t, int64_t);
void TOR_KERNEL(tor_reduce_columns_f64)(void *, const void *, int64_t, int64_t, int64_t);

const TorPointwiseTable TOR_KERNEL(tor_pointwise_table_any) = {
    .f32 = TOR_KERNEL(tor_pointwise_f32),
    .plain = TOR_KERNEL(tor_pointwise_plain_any),
    .cast = TOR_KERNEL(tor_pointwise_cast_any),
    .load_half = {TOR_KERNEL(tor_pointwise_load_f16), TOR_KERNEL(tor_pointwise_load_bf16)},
    .store_half = {TOR_KERNEL(tor_pointwise_store_f16), TOR_KERNEL(tor_pointwise_store_bf16)},
    .round_half = {TOR_KERNEL(tor_pointwise_round_f16), TOR_KERNEL(tor_pointwise_round_bf16)},
    .partial = TOR_KERNEL(tor_reduce_partial_any),
    .column_rows = {TOR_KERNEL(tor_reduce_columns_f32), TOR_KERNEL(tor_reduce_columns_f64)},
    .column = TOR_KERNEL(tor_reduce_column_any),
};
