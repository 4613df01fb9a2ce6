// The oracle: plain loops, sums in double, one rounding to float32 before the epilogue.
#include "kernels/gemm/contract.h"

static float element(const TorGemmArgs *args, int64_t batch, int64_t a_at, int64_t b_at, int64_t i,
                     int64_t j) {
    int64_t nr = tor_gemm_panel();
    double sum = 0;
    for (int64_t p = 0; p < args->k; p++) {
        float a, b;
        if (args->pack_a)
            args->pack_a(args->pack_ctx, batch, i, 1, p, 1, &a);
        else
            a = args->a[a_at + i * args->a_row + p * args->a_col];
        if (args->b_packed)
            b = args->b[b_at + (j / nr * args->k + p) * nr + j % nr];
        else
            b = args->b[b_at + p * args->b_row + j * args->b_col];
        sum += (double)a * b;
    }
    return (float)sum;
}

void tor_gemm_run_ref(const TorGemmArgs *args, void *epilogue_scratch) {
    int64_t batches = 1;
    for (int d = 0; d < args->batch_rank; d++) batches *= args->batch_size[d];
    for (int64_t batch = 0; batch < batches; batch++) {
        int64_t a = 0, b = 0, c = 0, bias = 0, rest = batch;
        for (int d = args->batch_rank - 1; d >= 0; d--) {
            int64_t at = rest % args->batch_size[d];
            rest /= args->batch_size[d];
            a += at * args->a_batch[d], b += at * args->b_batch[d];
            c += at * args->c_batch[d], bias += at * args->bias_batch[d];
        }
        for (int64_t i = 0; i < args->m; i++) {
            for (int64_t j = 0; j < args->n; j++) {
                float x = element(args, batch, a, b, i, j);
                if (args->bias) x += args->bias[bias + j];
                if (args->epilogue)
                    tor_epilogue_run(args->epilogue, batch, i, 1, j, 1, &x, 1, epilogue_scratch);
                else
                    args->c[c + i * args->c_row + j] = x;
            }
        }
    }
}

// ---------------------------------------------------------------- other types

typedef struct {
    const TorGemmArgs *args;
    TorDtype dtype;
    int64_t batch, a, b;
} Typed;

static TorScalar load(const Typed *t, const void *base, int64_t at) {
    return tor_scalar_load((const char *)base + at * (int64_t)tor_dtype_size(t->dtype), t->dtype);
}

static TorScalar a_element(const Typed *t, int64_t i, int64_t p) {
    const TorGemmArgs *args = t->args;
    uint64_t element;
    if (!args->pack_a) return load(t, args->a, t->a + i * args->a_row + p * args->a_col);
    args->pack_a(args->pack_ctx, t->batch, i, 1, p, 1, &element);
    return tor_scalar_load(&element, t->dtype);
}

static TorScalar typed_element(const Typed *t, int64_t i, int64_t j, TorScalar sum) {
    long double wide = tor_dtype_is_float(t->dtype) ? sum.f : 0;
    uint64_t bits = tor_dtype_is_float(t->dtype) ? 0 : (uint64_t)sum.i;
    for (int64_t p = 0; p < t->args->k; p++) {
        TorScalar x = a_element(t, i, p),
                  y = load(t, t->args->b, t->b + p * t->args->b_row + j * t->args->b_col);
        if (tor_dtype_is_float(t->dtype))
            wide += (long double)x.f * y.f;
        else
            bits += (uint64_t)x.i * (uint64_t)y.i;
    }
    TorScalar result = {.dtype = TOR_int64, .i = (int64_t)bits};
    if (tor_dtype_is_float(t->dtype)) result = (TorScalar){.dtype = TOR_float64, .f = (double)wide};
    return tor_scalar_cast(result, t->dtype);
}

void tor_gemm_typed_run_ref(const TorGemmArgs *args, TorDtype dtype) {
    int64_t batches = 1;
    for (int d = 0; d < args->batch_rank; d++) batches *= args->batch_size[d];
    for (int64_t batch = 0; batch < batches; batch++) {
        Typed t = {.args = args, .dtype = dtype, .batch = batch};
        int64_t c = 0, bias = 0, rest = batch;
        for (int d = args->batch_rank - 1; d >= 0; d--) {
            int64_t at = rest % args->batch_size[d];
            rest /= args->batch_size[d];
            t.a += at * args->a_batch[d], t.b += at * args->b_batch[d];
            c += at * args->c_batch[d], bias += at * args->bias_batch[d];
        }
        for (int64_t i = 0; i < args->m; i++)
            for (int64_t j = 0; j < args->n; j++) {
                TorScalar zero = {.dtype = dtype},
                          sum = typed_element(&t, i, j,
                                              args->bias ? load(&t, args->bias, bias + j) : zero);
                tor_scalar_store(
                    (char *)args->c + (c + i * args->c_row + j) * (int64_t)tor_dtype_size(dtype),
                    sum);
            }
    }
}
