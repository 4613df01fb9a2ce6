/// Scan's kernels for one instruction set: up to TOR_SCAN_LANES lines at a time, one step of all of
/// them after the other. Each body is compiled for one line, for lines that are neighbours in
/// memory (which vectorises), and for any.
#include <math.h>

#include "base/simd.h"
#include "kernels/scan/lanes.h"

#define SAME(x) (x)

/// A running value of type `acc`, from `first` on, that `step` changes.
#define RUNNING(name, kind, type, acc, first, step, load, store)                         \
    TOR_INLINE void name##_##kind(const TorScanBlock *b, int64_t lanes, int64_t src_gap, \
                                  int64_t dst_gap) {                                     \
        acc state[TOR_SCAN_LANES];                                                       \
        for (int64_t l = 0; l < lanes; l++) state[l] = first;                            \
        for (int64_t i = 0; i < b->n; i++) {                                             \
            const type *src = (const type *)b->src + i * b->src_step;                    \
            type *dst = (type *)b->dst + i * b->dst_step;                                \
            for (int64_t l = 0; l < lanes; l++) {                                        \
                state[l] = step(state[l], (acc)load(src[l * src_gap]));                  \
                dst[l * dst_gap] = (type)store(state[l]);                                \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
    ENTRY(name, kind)

/// The three ways in.
#define ENTRY(name, kind)                                                \
    TorScanFn TOR_KERNEL_IMPL(tor_scan_##name, kind);                    \
    void TOR_KERNEL_IMPL(tor_scan_##name, kind)(const TorScanBlock *b) { \
        if (b->lanes == 1)                                               \
            name##_##kind(b, 1, 0, 0);                                   \
        else if (b->src_gap == 1 && b->dst_gap == 1)                     \
            name##_##kind(b, b->lanes, 1, 1);                            \
        else                                                             \
            name##_##kind(b, b->lanes, b->src_gap, b->dst_gap);          \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))

#define SUMS(kind, first, step)                                                         \
    RUNNING(i8, kind, uint8_t, uint64_t, first, step, SAME, SAME)                       \
    RUNNING(i16, kind, uint16_t, uint64_t, first, step, SAME, SAME)                     \
    RUNNING(i32, kind, uint32_t, uint64_t, first, step, SAME, SAME)                     \
    RUNNING(i64, kind, uint64_t, uint64_t, first, step, SAME, SAME)                     \
    RUNNING(f16, kind, uint16_t, float, first, step, tor_f16_to_f32, tor_f32_to_f16)    \
    RUNNING(bf16, kind, uint16_t, float, first, step, tor_bf16_to_f32, tor_f32_to_bf16) \
    RUNNING(f32, kind, float, double, first, step, SAME, SAME)                          \
    RUNNING(f64, kind, double, double, first, step, SAME, SAME)

SUMS(sum, 0, PLUS)
SUMS(prod, 1, TIMES)

/// log(exp(a) + exp(b)). Infinities of one sign give themselves, not inf - inf.
TOR_INLINE double log_add_exp(double a, double b) {
    double low = a < b ? a : b, high = a < b ? b : a;
    if (a != a || b != b) return a + b;
    return low == high && !isfinite(low) ? low : log1p(exp(low - high)) + high;
}

#define TO_F16(x) tor_f32_to_f16((float)(x))
#define TO_BF16(x) tor_f32_to_bf16((float)(x))
RUNNING(f16, logsumexp, uint16_t, double, -INFINITY, log_add_exp, tor_f16_to_f32, TO_F16)
RUNNING(bf16, logsumexp, uint16_t, double, -INFINITY, log_add_exp, tor_bf16_to_f32, TO_BF16)
RUNNING(f32, logsumexp, float, double, -INFINITY, log_add_exp, SAME, SAME)
RUNNING(f64, logsumexp, double, double, -INFINITY, log_add_exp, SAME, SAME)

/// The extreme so far and where it is. `wins(a, b)`: a takes the place of b.
#define EXTREME(name, kind, type, load, wins)                                            \
    TOR_INLINE void name##_##kind(const TorScanBlock *b, int64_t lanes, int64_t src_gap, \
                                  int64_t dst_gap) {                                     \
        type best[TOR_SCAN_LANES];                                                       \
        int64_t at[TOR_SCAN_LANES];                                                      \
        for (int64_t l = 0; l < lanes; l++)                                              \
            best[l] = ((const type *)b->src)[l * src_gap], at[l] = 0;                    \
        for (int64_t i = 0; i < b->n; i++) {                                             \
            const type *src = (const type *)b->src + i * b->src_step;                    \
            for (int64_t l = 0; l < lanes; l++) {                                        \
                type x = src[l * src_gap];                                               \
                bool take = wins(load(x), load(best[l]));                                \
                best[l] = take ? x : best[l];                                            \
                at[l] = take ? i : at[l];                                                \
            }                                                                            \
            for (int64_t l = 0; b->dst && l < lanes; l++)                                \
                ((type *)b->dst)[i * b->dst_step + l * dst_gap] = best[l];               \
            for (int64_t l = 0; b->index && l < lanes; l++)                              \
                b->index[i * b->index_step + l * b->index_gap] = at[l];                  \
        }                                                                                \
    }                                                                                    \
    ENTRY(name, kind)

#define INTEGER_GE(a, b) ((a) >= (b))
#define INTEGER_LE(a, b) ((a) <= (b))
#define FLOAT_GE(a, b) ((a) != (a) || (a) >= (b))
#define FLOAT_LE(a, b) ((a) != (a) || (a) <= (b))

#define EXTREMES(kind, integer, real)                    \
    EXTREME(u8, kind, uint8_t, SAME, integer)            \
    EXTREME(i8, kind, int8_t, SAME, integer)             \
    EXTREME(i16, kind, int16_t, SAME, integer)           \
    EXTREME(i32, kind, int32_t, SAME, integer)           \
    EXTREME(i64, kind, int64_t, SAME, integer)           \
    EXTREME(f16, kind, uint16_t, tor_f16_to_f32, real)   \
    EXTREME(bf16, kind, uint16_t, tor_bf16_to_f32, real) \
    EXTREME(f32, kind, float, SAME, real)                \
    EXTREME(f64, kind, double, SAME, real)

EXTREMES(max, INTEGER_GE, FLOAT_GE)
EXTREMES(min, INTEGER_LE, FLOAT_LE)
