#include "base/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu.h"

// Peak: independent multiply-adds, more of them than latency times throughput. The barrier keeps
// each accumulator alive in its register. No array: compilers differ in when they take one apart.
#define CHAINS 12
#define PEAK_LOOP(vec, lanes, fma, constraint)                                                   \
    vec x = (vec){0} + 0.999f, y = (vec){0} + 1e-3f;                                             \
    vec a0 = y, a1 = y, a2 = y, a3 = y, a4 = y, a5 = y, a6 = y, a7 = y, a8 = y, a9 = y, a10 = y, \
        a11 = y;                                                                                 \
    for (int64_t n = 0; n < loops; n++) {                                                        \
        a0 = fma(a0, x, y), a1 = fma(a1, x, y), a2 = fma(a2, x, y), a3 = fma(a3, x, y);          \
        a4 = fma(a4, x, y), a5 = fma(a5, x, y), a6 = fma(a6, x, y), a7 = fma(a7, x, y);          \
        a8 = fma(a8, x, y), a9 = fma(a9, x, y), a10 = fma(a10, x, y), a11 = fma(a11, x, y);      \
        __asm__ volatile(""                                                                      \
                         : "+" constraint(a0), "+" constraint(a1), "+" constraint(a2),           \
                           "+" constraint(a3), "+" constraint(a4), "+" constraint(a5));          \
        __asm__ volatile(""                                                                      \
                         : "+" constraint(a6), "+" constraint(a7), "+" constraint(a8),           \
                           "+" constraint(a9), "+" constraint(a10), "+" constraint(a11));        \
    }                                                                                            \
    sink = (a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11)[0];                     \
    return (double)loops * CHAINS * 2 * lanes

static volatile float sink;

typedef float v16b __attribute__((vector_size(16)));
#define MUL_ADD(a, x, y) ((a) * (x) + (y))
#if defined(__x86_64__)
static double peak_generic(int64_t loops) { PEAK_LOOP(v16b, 4, MUL_ADD, "x"); }
__attribute__((target("avx2,fma"))) static double peak_avx2(int64_t loops) {
    PEAK_LOOP(__m256, 8, _mm256_fmadd_ps, "x");
}
__attribute__((target("avx512f"))) static double peak_avx512(int64_t loops) {
    PEAK_LOOP(__m512, 16, _mm512_fmadd_ps, "v");
}
#else
static double peak_generic(int64_t loops) { PEAK_LOOP(v16b, 4, MUL_ADD, "w"); }
#endif

double tor_peak_flops(TorClock clock) {
    double (*fn)(int64_t) = peak_generic;
#if defined(__x86_64__)
    uint32_t features = tor_cpu_features();
    if (features & TOR_CPU_avx2 && features & TOR_CPU_fma) fn = peak_avx2;
    if (features & TOR_CPU_avx512) fn = peak_avx512;
#endif
    double best = 0;
    for (int i = 0; i < 4; i++) {
        double start = clock(), flops = fn(200000), rate = flops / (clock() - start);
        best = TOR_MAX(best, rate);
    }
    return best;
}

// Two streams, which the hardware fetches by itself: that is faster than one, and than anything
// fetched by instructions.
#if defined(__x86_64__)
typedef float v32b __attribute__((vector_size(32)));
#define TARGET_AVX __attribute__((target("avx")))
#else
typedef v16b v32b;
#define TARGET_AVX
#endif
TARGET_AVX static float read_all(const uint8_t *p, size_t bytes) {
    v32b s[4] = {0};
    enum { TURN = sizeof s };
    const uint8_t *half = p + bytes / 2;
    for (size_t i = 0; i < bytes / 2; i += TURN)
        _Pragma("GCC unroll 4") for (size_t u = 0; u < 4; u++) {
            s[u] += *(const v32b *)(p + i + u * sizeof *s);
            s[u] += *(const v32b *)(half + i + u * sizeof *s);
        }
    return (s[0] + s[1] + s[2] + s[3])[0];
}

double tor_peak_read(const uint8_t *memory, size_t bytes, TorClock clock) {
    double best = 0;
    for (int i = 0; i < 2; i++) {
        double start = clock();
        sink += read_all(memory, bytes);
        double rate = (double)bytes / (clock() - start);
        best = TOR_MAX(best, rate);
    }
    return best;
}

size_t tor_peak_read_bytes(void) { return TOR_MAX((size_t)128 << 20, 4 * tor_cpu_l3()); }
