/// The vector vocabulary in which kernels are written once and compiled for each instruction set.
///
/// Types are GCC/Clang vector extensions of TOR_VBYTES bytes, so + - * / & | ^ ~ << >> and
/// comparisons work as written (a comparison gives a mask of 0 and -1 integers). Only what the
/// extensions lack is here. TOR_ISA is the level that this translation unit is compiled for (a bare
/// word: generic, avx2, avx512); TOR_KERNEL() puts it into symbol names.
#ifndef TOR_BASE_SIMD_H
#define TOR_BASE_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef TOR_ISA
#define TOR_ISA generic
#define TOR_ISA_generic 1
#endif

#if defined(__AVX512F__) && defined(TOR_ISA_avx512)
#define TOR_VBYTES 64
#define TOR_NREGS 32
#elif defined(__AVX2__) && defined(TOR_ISA_avx2)
#define TOR_VBYTES 32
#define TOR_NREGS 16
#else
#define TOR_VBYTES 16
#if defined(__aarch64__)
#define TOR_NREGS 32
#else
#define TOR_NREGS 16
#endif
#endif

#define TOR_PASTE_(a, b) a##b
#define TOR_PASTE(a, b) TOR_PASTE_(a, b)
#define TOR_STR_(a) #a
#define TOR_STR(a) TOR_STR_(a)
/// TOR_KERNEL(tor_softmax_f32) is tor_softmax_f32__avx2; add the implementation's name by hand:
/// TOR_KERNEL(tor_gemm_f32_f32p24)_4x24 is not C, so use TOR_KERNEL_IMPL(prefix, impl).
#define TOR_KERNEL(prefix) TOR_PASTE(TOR_PASTE(prefix, __), TOR_ISA)
#define TOR_KERNEL_IMPL(prefix, impl) TOR_PASTE(TOR_PASTE(TOR_KERNEL(prefix), _), impl)

#define TOR_INLINE static inline __attribute__((always_inline, unused))

#define VF32 (TOR_VBYTES / 4)  ///< float lanes
#define VF64 (TOR_VBYTES / 8)  ///< double lanes

typedef float vf32 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef double vf64 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef int8_t vi8 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef uint8_t vu8 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef int16_t vi16 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef uint16_t vu16 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef int32_t vi32 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef uint32_t vu32 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef int64_t vi64 __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef uint64_t vu64 __attribute__((vector_size(TOR_VBYTES), may_alias));

// The same types without an alignment demand, for loads and stores.
typedef float vf32u __attribute__((vector_size(TOR_VBYTES), aligned(4), may_alias));
typedef double vf64u __attribute__((vector_size(TOR_VBYTES), aligned(8), may_alias));
typedef int32_t vi32u __attribute__((vector_size(TOR_VBYTES), aligned(4), may_alias));
typedef int64_t vi64u __attribute__((vector_size(TOR_VBYTES), aligned(8), may_alias));

TOR_INLINE vf32 vf32_load(const float *p) { return *(const vf32u *)p; }
TOR_INLINE void vf32_store(float *p, vf32 v) { *(vf32u *)p = v; }
TOR_INLINE vf64 vf64_load(const double *p) { return *(const vf64u *)p; }
TOR_INLINE void vf64_store(double *p, vf64 v) { *(vf64u *)p = v; }
TOR_INLINE vf32 vf32_set(float x) { return x - (vf32){0}; }
TOR_INLINE vf64 vf64_set(double x) { return x - (vf64){0}; }
TOR_INLINE vi32 vi32_set(int32_t x) { return x - (vi32){0}; }

/// a * b + c, fused where the level has it.
#if defined(TOR_ISA_avx512) && defined(__AVX512F__)
TOR_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) {
    return (vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
TOR_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) {
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
TOR_INLINE vf32 vf32_sqrt(vf32 a) { return (vf32)_mm512_sqrt_ps((__m512)a); }
/// Maximum and minimum: the second operand where either is NaN.
TOR_INLINE vf32 vf32_max(vf32 a, vf32 b) { return (vf32)_mm512_max_ps((__m512)a, (__m512)b); }
TOR_INLINE vf32 vf32_min(vf32 a, vf32 b) { return (vf32)_mm512_min_ps((__m512)a, (__m512)b); }
TOR_INLINE vf32 vf32_rint(vf32 a) { return (vf32)_mm512_roundscale_ps((__m512)a, 8); }
TOR_INLINE vi32 vf32_to_i32(vf32 a) { return (vi32)_mm512_cvtps_epi32((__m512)a); }
TOR_INLINE vf32 vi32_to_f32(vi32 a) { return (vf32)_mm512_cvtepi32_ps((__m512i)a); }
/// mask ? a : b, the mask's lanes all ones or all zeros
TOR_INLINE vf32 vf32_select(vi32 mask, vf32 a, vf32 b) {
    return (vf32)((mask & (vi32)a) | (~mask & (vi32)b));
}
/// table[index % 8]; the table has its eight entries twice.
TOR_INLINE vu32 vu32_lookup_8(const uint32_t *table, vu32 index) {
    return (vu32)_mm512_permutexvar_epi32((__m512i)index, _mm512_loadu_si512(table));
}
/// Lanes [0, n) from memory, zeros above; n in 0..VF32. Reads nothing beyond.
TOR_INLINE vf32 vf32_load_n(const float *p, int n) {
    return (vf32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
TOR_INLINE void vf32_store_n(float *p, vf32 v, int n) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
}
#elif defined(TOR_ISA_avx2) && defined(__AVX2__)
TOR_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) {
    return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
TOR_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) {
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
TOR_INLINE vf32 vf32_sqrt(vf32 a) { return (vf32)_mm256_sqrt_ps((__m256)a); }
TOR_INLINE vf32 vf32_max(vf32 a, vf32 b) { return (vf32)_mm256_max_ps((__m256)a, (__m256)b); }
TOR_INLINE vf32 vf32_min(vf32 a, vf32 b) { return (vf32)_mm256_min_ps((__m256)a, (__m256)b); }
TOR_INLINE vf32 vf32_rint(vf32 a) {
    return (vf32)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TOR_INLINE vi32 vf32_to_i32(vf32 a) { return (vi32)_mm256_cvtps_epi32((__m256)a); }
TOR_INLINE vf32 vi32_to_f32(vi32 a) { return (vf32)_mm256_cvtepi32_ps((__m256i)a); }
TOR_INLINE vf32 vf32_select(vi32 mask, vf32 a, vf32 b) {
    return (vf32)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}
TOR_INLINE vu32 vu32_lookup_8(const uint32_t *table, vu32 index) {
    return (vu32)_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)table),
                                             (__m256i)index);
}
TOR_INLINE vi32 vi32_first_n(int n) { return vi32_set(n) > (vi32){0, 1, 2, 3, 4, 5, 6, 7}; }
TOR_INLINE vf32 vf32_load_n(const float *p, int n) {
    return (vf32)_mm256_maskload_ps(p, (__m256i)vi32_first_n(n));
}
TOR_INLINE void vf32_store_n(float *p, vf32 v, int n) {
    _mm256_maskstore_ps(p, (__m256i)vi32_first_n(n), (__m256)v);
}
#else
TOR_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) {
#if defined(__aarch64__)
    return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
TOR_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return a * b + c; }
TOR_INLINE vf32 vf32_select(vi32 mask, vf32 a, vf32 b) {
    return (vf32)((mask & (vi32)a) | (~mask & (vi32)b));
}
TOR_INLINE vf32 vf32_max(vf32 a, vf32 b) { return vf32_select((vi32)(a > b), a, b); }
TOR_INLINE vf32 vf32_min(vf32 a, vf32 b) { return vf32_select((vi32)(a < b), a, b); }
TOR_INLINE vf32 vf32_sqrt(vf32 a) {
#if defined(__aarch64__)
    return (vf32)vsqrtq_f32((float32x4_t)a);
#else
    return (vf32)_mm_sqrt_ps((__m128)a);
#endif
}
TOR_INLINE vi32 vf32_to_i32(vf32 a) {  // to nearest even
#if defined(__aarch64__)
    return (vi32)vcvtnq_s32_f32((float32x4_t)a);
#else
    return (vi32)_mm_cvtps_epi32((__m128)a);
#endif
}
TOR_INLINE vf32 vi32_to_f32(vi32 a) { return __builtin_convertvector(a, vf32); }
TOR_INLINE vf32 vf32_rint(vf32 a) {
#if defined(__aarch64__)
    return (vf32)vrndnq_f32((float32x4_t)a);
#else
    // Beyond 2^23 every float is an integer; below, adding and taking away 2^23 rounds.
    vi32 sign = (vi32)a & vi32_set(INT32_MIN);
    vf32 magnitude = (vf32)((vi32)a & vi32_set(INT32_MAX));
    vf32 big = vf32_set(8388608.0f);
    volatile vf32 sum = magnitude + big;
    vf32 rounded = (vf32)((vi32)(sum - big) | sign);
    return vf32_select((vi32)(magnitude < big), rounded, a);
#endif
}
TOR_INLINE vf32 vf32_load_n(const float *p, int n) {
    float lane[VF32] = {0};
    memcpy(lane, p, (size_t)n * sizeof(float));
    return vf32_load(lane);
}
TOR_INLINE void vf32_store_n(float *p, vf32 v, int n) {
    float lane[VF32];
    vf32_store(lane, v);
    memcpy(p, lane, (size_t)n * sizeof(float));
}
#endif

/// Horizontal sum and maximum, pairwise: the order depends on the lane count alone.
TOR_INLINE float vf32_sum(vf32 v) {
    float lane[VF32];
    vf32_store(lane, v);
    for (int w = VF32 / 2; w; w /= 2)
        for (int i = 0; i < w; i++) lane[i] += lane[i + w];
    return lane[0];
}
TOR_INLINE float vf32_hmax(vf32 v) {
    float lane[VF32], most;
    vf32_store(lane, v);
    most = lane[0];
    for (int i = 1; i < VF32; i++) most = lane[i] > most ? lane[i] : most;
    return most;
}

#endif
