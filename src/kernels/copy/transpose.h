/// Transposes of 4-byte elements in registers, for SIMD sources. Works on 128-bit lanes, so that
/// the same steps serve every vector width: VF32 rows are loaded four columns at a time, rows l*4+i
/// into lane l of vector i, and each lane transposes its 4x4.
#ifndef TOR_KERNELS_COPY_TRANSPOSE_H
#define TOR_KERNELS_COPY_TRANSPOSE_H

#include "base/simd.h"

#if VF32 == 4
#define TOR_SHUFFLE4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#elif VF32 == 8
#define TOR_SHUFFLE4(a, b, i, j, k, l)                                                            \
    __builtin_shufflevector(a, b, TOR_IN8(i), TOR_IN8(j), TOR_IN8(k), TOR_IN8(l), TOR_IN8(i) + 4, \
                            TOR_IN8(j) + 4, TOR_IN8(k) + 4, TOR_IN8(l) + 4)
#define TOR_IN8(i) ((i) < 4 ? (i) : (i) + 4)
#else
#define TOR_SHUFFLE4(a, b, i, j, k, l)                                                          \
    __builtin_shufflevector(a, b, TOR_IN16(i), TOR_IN16(j), TOR_IN16(k), TOR_IN16(l),           \
                            TOR_IN16(i) + 4, TOR_IN16(j) + 4, TOR_IN16(k) + 4, TOR_IN16(l) + 4, \
                            TOR_IN16(i) + 8, TOR_IN16(j) + 8, TOR_IN16(k) + 8, TOR_IN16(l) + 8, \
                            TOR_IN16(i) + 12, TOR_IN16(j) + 12, TOR_IN16(k) + 12,               \
                            TOR_IN16(l) + 12)
#define TOR_IN16(i) ((i) < 4 ? (i) : (i) + 12)
#endif
// TOR_SHUFFLE4(a, b, i, j, k, l): in each lane, elements i, j, k, l of a's (0..3) and b's (4..7)
// lane.

/// In each 128-bit lane, the transpose of the 4x4 that v[0..3] hold.
TOR_INLINE void vf32_transpose4(vf32 v[4]) {
    vf32 t0 = TOR_SHUFFLE4(v[0], v[1], 0, 4, 1, 5), t1 = TOR_SHUFFLE4(v[2], v[3], 0, 4, 1, 5);
    vf32 t2 = TOR_SHUFFLE4(v[0], v[1], 2, 6, 3, 7), t3 = TOR_SHUFFLE4(v[2], v[3], 2, 6, 3, 7);
    v[0] = TOR_SHUFFLE4(t0, t1, 0, 1, 4, 5);
    v[1] = TOR_SHUFFLE4(t0, t1, 2, 3, 6, 7);
    v[2] = TOR_SHUFFLE4(t2, t3, 0, 1, 4, 5);
    v[3] = TOR_SHUFFLE4(t2, t3, 2, 3, 6, 7);
}

/// Columns [c, c+4) of VF32 rows: out[i] is column c+i.
TOR_INLINE void vf32_load_columns4(vf32 out[4], const float *const row[VF32], int64_t c) {
    for (int i = 0; i < 4; i++) {
#if VF32 == 4
        out[i] = vf32_load(row[i] + c);
#elif VF32 == 8
        out[i] = (vf32)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + c)),
                                            _mm_loadu_ps(row[i + 4] + c), 1);
#else
        __m512 wide = _mm512_castps128_ps512(_mm_loadu_ps(row[i] + c));
        wide = _mm512_insertf32x4(wide, _mm_loadu_ps(row[i + 4] + c), 1);
        wide = _mm512_insertf32x4(wide, _mm_loadu_ps(row[i + 8] + c), 2);
        out[i] = (vf32)_mm512_insertf32x4(wide, _mm_loadu_ps(row[i + 12] + c), 3);
#endif
    }
    vf32_transpose4(out);
}

#endif
