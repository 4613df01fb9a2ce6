// Gathers one instruction set's functions into its table.
#include "base/simd.h"
#include "kernels/pointwise/engine.h"

extern const TorTileFn TOR_KERNEL(tor_pointwise_f32)[TOR_TILE_FN_COUNT][8];
extern const TorTileFn TOR_KERNEL(tor_pointwise_plain)[TOR_FN_COUNT][TOR_DTYPE_COUNT];
extern const TorTileFn TOR_KERNEL(tor_pointwise_cast)[TOR_DTYPE_COUNT][TOR_DTYPE_COUNT];
extern const TorPartialFn TOR_KERNEL(tor_pointwise_partial)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
extern const TorColumnFn TOR_KERNEL(tor_pointwise_column)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
void TOR_KERNEL(tor_load_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_load_bf16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_store_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_store_bf16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_round_f16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_round_bf16)(void *, const void *, const void *, const void *, int64_t);
void TOR_KERNEL(tor_column_rows_f32)(void *, const void *, int64_t, int64_t, int64_t);
void TOR_KERNEL(tor_column_rows_f64)(void *, const void *, int64_t, int64_t, int64_t);

const TorPointwiseTable TOR_KERNEL(tor_pointwise_table) = {
    .f32 = TOR_KERNEL(tor_pointwise_f32),
    .plain = TOR_KERNEL(tor_pointwise_plain),
    .cast = TOR_KERNEL(tor_pointwise_cast),
    .load_half = {TOR_KERNEL(tor_load_f16), TOR_KERNEL(tor_load_bf16)},
    .store_half = {TOR_KERNEL(tor_store_f16), TOR_KERNEL(tor_store_bf16)},
    .round_half = {TOR_KERNEL(tor_round_f16), TOR_KERNEL(tor_round_bf16)},
    .partial = TOR_KERNEL(tor_pointwise_partial),
    .column_rows = {TOR_KERNEL(tor_column_rows_f32), TOR_KERNEL(tor_column_rows_f64)},
    .column = TOR_KERNEL(tor_pointwise_column),
};
