/// Elementary functions of float32 vectors, written once over base/simd.h.
///
/// Policy: at most about 2 ulp over the whole range (each function says what it measures), on
/// levels with and without FMA; NaN, infinities, signed zeros, subnormals and overflow as in C.
/// Sources. [C] Moshier's Cephes 2.8, single precision: exp, log, tanh, sin, cos polynomials.
/// [J] N. Juffa, "A faster, more accurate erff" (StackOverflow 35148198, 2016): erf.
/// [CW] Cody & Waite 1980: arguments reduced by constants in exact pieces. [K] Kahan's log1p.
#ifndef TOR_BASE_SIMD_MATH_H
#define TOR_BASE_SIMD_MATH_H

#include <math.h>

#include "base/simd.h"

TOR_INLINE vf32 vf32_abs(vf32 x) { return (vf32)((vi32)x & vi32_set(INT32_MAX)); }
TOR_INLINE vf32 vf32_sign_of(vf32 magnitude, vf32 sign) {
    return (vf32)(((vi32)magnitude & vi32_set(INT32_MAX)) | ((vi32)sign & vi32_set(INT32_MIN)));
}

/// e^r - 1 - r for |r| <= ln2 / 2. [C]
TOR_INLINE vf32 vf32_exp_rest(vf32 r) {
    vf32 p = vf32_set(1.9875691500e-4f);
    p = vf32_fma(p, r, vf32_set(1.3981999507e-3f));
    p = vf32_fma(p, r, vf32_set(8.3334519073e-3f));
    p = vf32_fma(p, r, vf32_set(4.1665795894e-2f));
    p = vf32_fma(p, r, vf32_set(1.6666665459e-1f));
    p = vf32_fma(p, r, vf32_set(5.0000001201e-1f));
    return p * (r * r);
}

/// x = n ln2 + r. The sum with 1.5 * 2^23 rounds to an integer, which its low bits then hold.
TOR_INLINE vf32 vf32_exp_reduce(vf32 x, vi32 *n) {
    vf32 shifted = vf32_fma(x, vf32_set(1.44269504088896341f), vf32_set(12582912.0f));
    vf32 whole = shifted - vf32_set(12582912.0f);
    *n = (vi32)((vu32)shifted - 0x4b400000u);              // unsigned: NaN may wrap
    vf32 r = vf32_fma(whole, vf32_set(-0.693359375f), x);  // exact: the constant has 9 bits [CW]
    return vf32_fma(whole, vf32_set(2.12194440e-4f), r);
}

/// p * 2^n for n in -252..254, in two steps so that subnormal and infinite results come out right.
TOR_INLINE vf32 vf32_scale(vf32 p, vi32 n) {
    vu32 half = (vu32)(n >> 1);
    vf32 low = (vf32)((half + 127u) << 23), high = (vf32)(((vu32)n - half + 127u) << 23);
    return p * low * high;
}

/// 1 ulp.
TOR_INLINE vf32 vf32_exp(vf32 x) {
    vi32 n;
    x = vf32_min(vf32_set(89.0f), vf32_max(vf32_set(-104.0f), x));  // NaN passes
    vf32 r = vf32_exp_reduce(x, &n);
    return vf32_scale(vf32_exp_rest(r) + r + 1.0f, n);
}

/// 1 ulp.
TOR_INLINE vf32 vf32_exp2(vf32 x) {
    x = vf32_min(vf32_set(129.0f), vf32_max(vf32_set(-151.0f), x));
    vf32 shifted = x + vf32_set(12582912.0f);
    vi32 n = (vi32)((vu32)shifted - 0x4b400000u);
    vf32 r = (x - (shifted - vf32_set(12582912.0f))) * vf32_set(0.693147180559945309f);
    return vf32_scale(vf32_exp_rest(r) + r + 1.0f, n);
}

/// 1.5 ulp. 2^n (e^r - 1) + (2^n - 1); beyond 60 the -1 is lost anyway.
TOR_INLINE vf32 vf32_expm1(vf32 x) {
    vi32 n;
    vf32 clamped = vf32_min(vf32_set(60.0f), vf32_max(vf32_set(-30.0f), x));
    vf32 r = vf32_exp_reduce(clamped, &n);
    vf32 power = (vf32)(((vu32)n + 127u) << 23);
    vf32 y = vf32_fma(vf32_exp_rest(r) + r, power, power - 1.0f);
    y = vf32_select((vi32)(x > vf32_set(60.0f)), vf32_exp(x), y);
    return vf32_select((vi32)(vf32_abs(x) < vf32_set(1e-8f)), x, y);
}

/// log(m) for x = 2^e m, m in [sqrt(1/2), sqrt(2)), as high + low with high = m - 1; positive
/// normal x. [C]
TOR_INLINE vf32 vf32_log_parts(vf32 x, vf32 *e, vf32 *high) {
    vi32 bits = (vi32)((vu32)x - 0x3f3504f3u);  // sqrt(1/2); NaN and negative x may wrap
    *e = vi32_to_f32(bits >> 23);
    vf32 m = (vf32)((bits & vi32_set(0x007fffff)) + vi32_set(0x3f3504f3)) - 1.0f;
    vf32 z = m * m;
    vf32 p = vf32_set(7.0376836292e-2f);
    p = vf32_fma(p, m, vf32_set(-1.1514610310e-1f));
    p = vf32_fma(p, m, vf32_set(1.1676998740e-1f));
    p = vf32_fma(p, m, vf32_set(-1.2420140846e-1f));
    p = vf32_fma(p, m, vf32_set(1.4249322787e-1f));
    p = vf32_fma(p, m, vf32_set(-1.6668057665e-1f));
    p = vf32_fma(p, m, vf32_set(2.0000714765e-1f));
    p = vf32_fma(p, m, vf32_set(-2.4999993993e-1f));
    p = vf32_fma(p, m, vf32_set(3.3333331174e-1f));
    *high = m;
    return vf32_fma(p * m, z, z * vf32_set(-0.5f));
}

/// Subnormals times 2^23; *bias is what the exponent then lacks.
TOR_INLINE vf32 vf32_log_normal(vf32 x, vf32 *bias) {
    vi32 small = (vi32)(x < vf32_set(1.17549435e-38f));
    *bias = vf32_select(small, vf32_set(-23.0f), vf32_set(0.0f));
    return vf32_select(small, x * 8388608.0f, x);
}

/// -inf at zero, NaN below, inf at inf, NaN at NaN.
TOR_INLINE vf32 vf32_log_special(vf32 x, vf32 y) {
    y = vf32_select((vi32)(x == vf32_set(INFINITY)) | (vi32)(x != x), x, y);
    y = vf32_select((vi32)(x < vf32_set(0.0f)), vf32_set(NAN), y);
    return vf32_select((vi32)(x == vf32_set(0.0f)), vf32_set(-INFINITY), y);
}

/// 1 ulp.
TOR_INLINE vf32 vf32_log(vf32 x) {
    vf32 bias, e, high, low;
    low = vf32_log_parts(vf32_log_normal(x, &bias), &e, &high);
    e += bias;
    low = vf32_fma(e, vf32_set(-2.12194440e-4f), low);
    return vf32_log_special(x, vf32_fma(e, vf32_set(0.693359375f), high + low));
}

/// log(x) * (hi + lo) + e * scale for other bases; hi has 12 bits so that the product with high is
/// nearly exact.
TOR_INLINE vf32 vf32_log_base(vf32 x, float hi, float lo, float e_hi, float e_lo) {
    vf32 bias, e, high, low;
    low = vf32_log_parts(vf32_log_normal(x, &bias), &e, &high);
    e += bias;
    vf32 top = (vf32)((vi32)high & vi32_set((int32_t)0xfffff000));
    low += high - top;
    vf32 y = low * vf32_set(hi) + (low + top) * vf32_set(lo) + e * vf32_set(e_lo);
    return vf32_log_special(x, vf32_fma(e, vf32_set(e_hi), vf32_fma(top, vf32_set(hi), y)));
}
/// 1.5 ulp each.
TOR_INLINE vf32 vf32_log2(vf32 x) {
    return vf32_log_base(x, 1.44287109375f, -1.7605286103659264e-4f, 1.0f, 0.0f);
}
TOR_INLINE vf32 vf32_log10(vf32 x) {
    return vf32_log_base(x, 0.434326171875f, -3.168997174817235e-5f, 0.301025390625f,
                         4.605038981195214e-6f);
}

/// 2 ulp. log(1 + x) with what rounding 1 + x loses put back. [K]
TOR_INLINE vf32 vf32_log1p(vf32 x) {
    vf32 u = x + 1.0f;
    vf32 lost = (x - (u - 1.0f)) / u;
    // From 2^24 up `u - 1` may differ from x by rounding alone; the correction is below an ulp
    // there.
    lost = vf32_select((vi32)(x < vf32_set(16777216.0f)) & (vi32)(u > vf32_set(0.0f)), lost,
                       vf32_set(0.0f));
    vf32 y = vf32_log(u) + lost;
    return vf32_select((vi32)(vf32_abs(x) < vf32_set(1e-8f)), x, y);
}

/// 1.5 ulp. [C]: a polynomial near zero, 1 - 2 / (e^2x + 1) beyond.
TOR_INLINE vf32 vf32_tanh(vf32 x) {
    vf32 a = vf32_abs(x), z = x * x;
    vf32 p = vf32_set(-5.70498872745e-3f);
    p = vf32_fma(p, z, vf32_set(2.06390887954e-2f));
    p = vf32_fma(p, z, vf32_set(-5.37397155531e-2f));
    p = vf32_fma(p, z, vf32_set(1.33314422036e-1f));
    p = vf32_fma(p, z, vf32_set(-3.33332819422e-1f));
    vf32 small = vf32_fma(p * z, x, x);
    a = vf32_min(vf32_set(10.0f), a);
    vi32 n;
    vf32 r = vf32_exp_reduce(a + a, &n);
    vf32 e = (vf32_exp_rest(r) + r + 1.0f) * (vf32)(((vu32)n + 127u) << 23);
    vf32 large = 1.0f - 2.0f / (e + 1.0f);
    // NaN takes the polynomial; -0 gets its sign back.
    return vf32_sign_of(vf32_select((vi32)(a >= vf32_set(0.625f)), large, small), x);
}

#define VF32_SEVERAL(n) _Pragma("GCC unroll 4") for (int i = 0; i < (n); i++)

#if VF32 >= 8
/// n vectors of (1 + e^-x) / 2 step by step, since a chain of one alone waits for its own results;
/// `n` is a constant. e^-x is 2^(j / 8) e^-r, j an integer whose low bits look up the root of two.
/// The half keeps 2^(j / 8) in one step. From -89.4 down it is infinite, from 86 up it is 1 / 2.
TOR_INLINE void vf32_half_logistics(vf32 *y, const vf32 *x, const int n) {
    // Bits of 2^(i / 8) / 2 less i / 8 of an exponent.
    static const uint32_t roots[16] = {
        0x3f000000, 0x3efb95c2, 0x3ef837f0, 0x3ef5fed7, 0x3ef504f3, 0x3ef5672a,
        0x3ef744fd, 0x3efac0c7, 0x3f000000, 0x3efb95c2, 0x3ef837f0, 0x3ef5fed7,
        0x3ef504f3, 0x3ef5672a, 0x3ef744fd, 0x3efac0c7,
    };
    const vf32 magic = vf32_set(12582912.0f);
    vf32 r[4], p[4], shifted[4];
    VF32_SEVERAL(n) r[i] = vf32_min(vf32_set(86.0f), x[i]);  // NaN passes
    VF32_SEVERAL(n) r[i] = vf32_max(vf32_set(-89.416f), r[i]);
    VF32_SEVERAL(n) shifted[i] = vf32_fma(r[i], vf32_set(-8 * 1.44269504088896341f), magic);
    VF32_SEVERAL(n) p[i] = shifted[i] - magic;
    VF32_SEVERAL(n) r[i] = vf32_fma(p[i], vf32_set(0.693359375f / 8), r[i]);
    VF32_SEVERAL(n) r[i] = vf32_fma(p[i], vf32_set(-2.12194440e-4f / 8), r[i]);
    VF32_SEVERAL(n) p[i] = vf32_fma(r[i], vf32_set(0.041660406f), vf32_set(-0.16668031f));
    VF32_SEVERAL(n) p[i] = vf32_fma(p[i], r[i], vf32_set(0.5f));
    VF32_SEVERAL(n) p[i] = vf32_fma(p[i], r[i], vf32_set(-1.0f));
    VF32_SEVERAL(n) p[i] = vf32_fma(p[i], r[i], vf32_set(1.0f));
    VF32_SEVERAL(n) {
        vu32 power = ((vu32)shifted[i] << 20) + vu32_lookup_8(roots, (vu32)shifted[i]);
        y[i] = vf32_fma(p[i], (vf32)power, vf32_set(0.5f));
    }
}
#else
/// n vectors of (1 + e^-x) / 2, with e^-x as in vf32_exp() but signs turned in constants and the
/// whole polynomial nested. The half keeps 2^j in one step. From -89.1 down it is infinite, from 86
/// up it is 1 / 2.
TOR_INLINE void vf32_half_logistics(vf32 *y, const vf32 *x, const int n) {
    const vf32 magic = vf32_set(12582912.0f);
    VF32_SEVERAL(n) {
        vf32 r = vf32_max(vf32_set(-89.5f), vf32_min(vf32_set(86.0f), x[i]));  // NaN passes
        vf32 shifted = vf32_fma(r, vf32_set(-1.44269504088896341f), magic), whole = shifted - magic;
        r = vf32_fma(whole, vf32_set(0.693359375f), r);
        r = vf32_fma(whole, vf32_set(-2.12194440e-4f), r);
        vf32 p = vf32_set(-1.9875691500e-4f);
        p = vf32_fma(p, r, vf32_set(1.3981999507e-3f));
        p = vf32_fma(p, r, vf32_set(-8.3334519073e-3f));
        p = vf32_fma(p, r, vf32_set(4.1665795894e-2f));
        p = vf32_fma(p, r, vf32_set(-1.6666665459e-1f));
        p = vf32_fma(p, r, vf32_set(5.0000001201e-1f));
        p = vf32_fma(p, r, vf32_set(-1.0f));
        p = vf32_fma(p, r, vf32_set(1.0f));
        vf32 power = (vf32)(((vu32)shifted + 126u) << 23);
        y[i] = vf32_fma(p, power, vf32_set(0.5f));
    }
}
#endif

/// 2.4 ulp, 2.7 ulp; of n vectors, at most four.
TOR_INLINE void vf32_sigmoids(vf32 *y, const vf32 *x, const int n) {
    vf32 half[4];
    vf32_half_logistics(half, x, n);
    VF32_SEVERAL(n) y[i] = 0.5f / half[i];
}
TOR_INLINE void vf32_silus(vf32 *y, const vf32 *x, const int n) {
    vf32 half[4];
    vf32_half_logistics(half, x, n);
    VF32_SEVERAL(n) y[i] = 0.5f * x[i] / half[i];
}
TOR_INLINE vf32 vf32_sigmoid(vf32 x) {
    vf32_sigmoids(&x, &x, 1);
    return x;
}
TOR_INLINE vf32 vf32_silu(vf32 x) {
    vf32_silus(&x, &x, 1);
    return x;
}

/// erf's polynomial for |x| <= 475/512. [J]
TOR_INLINE vf32 vf32_erf_small(vf32 x) {
    vf32 s = x * x, r = vf32_set(-5.96761703e-4f);
    r = vf32_fma(r, s, vf32_set(4.99119423e-3f));
    r = vf32_fma(r, s, vf32_set(-2.67681349e-2f));
    r = vf32_fma(r, s, vf32_set(1.12819925e-1f));
    r = vf32_fma(r, s, vf32_set(-3.76125336e-1f));
    r = vf32_fma(r, s, vf32_set(1.28379166e-1f));
    return vf32_fma(r, x, x);
}
/// erfc(t) to 2^-25 absolute for t > 475/512. [J]
TOR_INLINE vf32 vf32_erfc_tail(vf32 t) {
    t = vf32_min(vf32_set(12.0f), t);
    vf32 s = t * t;
    vf32 r = vf32_fma(vf32_set(-1.72853470e-5f), t, vf32_set(3.83197126e-4f));
    vf32 u = vf32_fma(vf32_set(-3.88396438e-3f), t, vf32_set(2.42546219e-2f));
    r = vf32_fma(r, s, u);
    r = vf32_fma(r, t, vf32_set(-1.06777877e-1f));
    r = vf32_fma(r, t, vf32_set(-6.34846687e-1f));
    r = vf32_fma(r, t, vf32_set(-1.28717512e-1f));
    return vf32_exp(vf32_fma(r, t, -t));
}
/// 1 ulp.
TOR_INLINE vf32 vf32_erf(vf32 x) {
    vf32 t = vf32_abs(x);
    vf32 large = vf32_sign_of(1.0f - vf32_erfc_tail(t), x);
    return vf32_select((vi32)(t > vf32_set(0.927734375f)), large, vf32_erf_small(x));
}

/// x Phi(x), 3 ulp for x > 0 and 8e-7 absolute below (eager's own form loses as much to 1 + erf).
/// Phi(x) - 1/2 is x P(x^2) / Q(x^2) on |x| <= 5.5 to 5e-8: a rational fit by least squares with
/// Lawson's weights, one division instead of two branches and an exponential.
TOR_INLINE vf32 vf32_gelu_erf(vf32 x) {
    const vf32 edge = vf32_set(5.5f);
    vf32 c = vf32_max(-edge, vf32_min(edge, x)), t = c * c;  // NaN passes
    vf32 p = vf32_set(1.1200246980e-10f);
    p = vf32_fma(p, t, vf32_set(-2.1725515609e-8f));
    p = vf32_fma(p, t, vf32_set(3.0919140954e-6f));
    p = vf32_fma(p, t, vf32_set(1.5885513858e-4f));
    p = vf32_fma(p, t, vf32_set(4.4388980605e-3f));
    p = vf32_fma(p, t, vf32_set(3.4865681082e-2f));
    p = vf32_fma(p, t, vf32_set(3.9894226193e-1f));
    vf32 q = vf32_set(5.8260757214e-5f);
    q = vf32_fma(q, t, vf32_set(1.7660744488e-3f));
    q = vf32_fma(q, t, vf32_set(2.8472255915e-2f));
    q = vf32_fma(q, t, vf32_set(2.5406119227e-1f));
    q = vf32_fma(q, t, vf32_set(1.0f));
    vf32 phi = vf32_fma(c, p / q, vf32_set(0.5f));
    // Beyond the edge Phi is 0 and 1 to the last bit.
    vi32 low = (vi32)(x <= -edge), high = (vi32)(x >= edge);
    phi = (vf32)((vi32)phi & ~low);
    return x * vf32_select(high, vf32_set(1.0f), phi);
}
/// x (1 + tanh z) / 2 is x / (1 + e^-2z), z = sqrt(2/pi) (x + 0.044715 x^3).
TOR_INLINE vf32 vf32_gelu_tanh(vf32 x) {
    vf32 z2 = x * vf32_fma(x * x, vf32_set(-2.0f * 0.79788456080286536f * 0.044715f),
                           vf32_set(-2.0f * 0.79788456080286536f));
    return x / (1.0f + vf32_exp(z2));
}

/// sin or cos by libm, lane by lane, for the rare large arguments.
TOR_INLINE vf32 vf32_libm(vf32 x, float (*f)(float)) {
    float lane[VF32];
    vf32_store(lane, x);
    for (int i = 0; i < VF32; i++) lane[i] = f(lane[i]);
    return vf32_load(lane);
}
TOR_INLINE int vi32_any(vi32 mask) {
    int32_t lane[VF32], any = 0;
    memcpy(lane, &mask, sizeof lane);
    for (int i = 0; i < VF32; i++) any |= lane[i];
    return any != 0;
}
/// sin(x + quarter * pi/2) for |x| <= 8192: pi/2 in pieces whose products with n are exact [CW],
/// then the polynomials of [C]. 1.5 ulp up to 10, 2.3 up to 8192.
TOR_INLINE vf32 vf32_sin_quarter(vf32 x, int quarter) {
    vf32 shifted = vf32_fma(x, vf32_set(0.636619772367581343f), vf32_set(12582912.0f));
    vf32 n = shifted - vf32_set(12582912.0f);
    vi32 q = (vi32)((vu32)shifted - 0x4b400000u + (uint32_t)quarter);
    vf32 r = x - n * 1.5703125f;
    r = r - n * 4.837512969970703125e-4f;
    r = r - n * 0x1.444p-24f;
    r = vf32_fma(n, vf32_set(-0x1.68c234p-39f), r);
    vf32 z = r * r;
    vf32 s = vf32_set(-1.9515295891e-4f);
    s = vf32_fma(s, z, vf32_set(8.3321608736e-3f));
    s = vf32_fma(s, z, vf32_set(-1.6666654611e-1f));
    s = vf32_fma(s * z, r, r);
    vf32 c = vf32_set(2.443315711809948e-5f);
    c = vf32_fma(c, z, vf32_set(-1.388731625493765e-3f));
    c = vf32_fma(c, z, vf32_set(4.166664568298827e-2f));
    c = vf32_fma(c, z * z, vf32_fma(z, vf32_set(-0.5f), vf32_set(1.0f)));
    vf32 y = vf32_select((q & 1) != 0, c, s);
    return (vf32)((vu32)y ^ (((vu32)q & 2u) << 30));
}
TOR_INLINE vf32 vf32_sin(vf32 x) {
    vi32 far = ~(vi32)(vf32_abs(x) <= vf32_set(8192.0f));
    if (__builtin_expect(vi32_any(far), 0)) return vf32_libm(x, sinf);
    // -0 keeps its sign
    return vf32_select((vi32)(x == vf32_set(0.0f)), x, vf32_sin_quarter(x, 0));
}
TOR_INLINE vf32 vf32_cos(vf32 x) {
    vi32 far = ~(vi32)(vf32_abs(x) <= vf32_set(8192.0f));
    if (__builtin_expect(vi32_any(far), 0)) return vf32_libm(x, cosf);
    return vf32_sin_quarter(x, 1);
}

#endif
