/// What a step of a recurrent layer does after its product, one row at a time.
#include "base/simd.h"
#include "base/simd_math.h"
#include "kernels/rnn/contract.h"

TOR_INLINE vf32 load(const float *p, int n) { return n == VF32 ? vf32_load(p) : vf32_load_n(p, n); }
TOR_INLINE void store(float *p, vf32 v, int n) {
    if (n == VF32)
        vf32_store(p, v);
    else
        vf32_store_n(p, v, n);
}

// The sum of both products of gate `g`.
#define GATE(g) (load(p + (g)*width + i, n) + load(r + (g)*width + i, n))

TOR_INLINE void lstm(const float *p, const float *r, float *h, float *c, float *y, int64_t width,
                     int64_t i, int n) {
    vf32 in = vf32_sigmoid(GATE(0)), forget = vf32_sigmoid(GATE(1)), cell = vf32_tanh(GATE(2)),
         out = vf32_sigmoid(GATE(3));
    cell = vf32_fma(forget, load(c + i, n), in * cell);
    store(c + i, cell, n);
    out *= vf32_tanh(cell);
    store(h + i, out, n);
    store(y + i, out, n);
}

TOR_INLINE void gru(const float *p, const float *r, float *h, float *c, float *y, int64_t width,
                    int64_t i, int n) {
    (void)c;
    vf32 reset = vf32_sigmoid(GATE(0)), update = vf32_sigmoid(GATE(1));
    vf32 fresh = vf32_tanh(vf32_fma(reset, load(r + 2 * width + i, n), load(p + 2 * width + i, n)));
    vf32 out = vf32_fma(update, load(h + i, n) - fresh, fresh);
    store(h + i, out, n);
    store(y + i, out, n);
}

TOR_INLINE void simple_tanh(const float *p, const float *r, float *h, float *c, float *y,
                            int64_t width, int64_t i, int n) {
    (void)c;
    vf32 out = vf32_tanh(GATE(0));
    store(h + i, out, n);
    store(y + i, out, n);
}

TOR_INLINE void simple_relu(const float *p, const float *r, float *h, float *c, float *y,
                            int64_t width, int64_t i, int n) {
    (void)c;
    // The second operand where either is NaN: as eager, which keeps NaN.
    vf32 out = vf32_max(vf32_set(0.0f), GATE(0));
    store(h + i, out, n);
    store(y + i, out, n);
}

#define ROW(name, step)                                                                         \
    TorRnnFn TOR_KERNEL_IMPL(tor_rnn_f32, name);                                                \
    void TOR_KERNEL_IMPL(tor_rnn_f32, name)(const float *p, const float *r, float *h, float *c, \
                                            float *y, int64_t width) {                          \
        int64_t i = 0;                                                                          \
        for (; i + VF32 <= width; i += VF32) step(p, r, h, c, y, width, i, VF32);               \
        if (i < width) step(p, r, h, c, y, width, i, (int)(width - i));                         \
    }

ROW(lstm, lstm)
ROW(gru, gru)
ROW(tanh, simple_tanh)
ROW(relu, simple_relu)
