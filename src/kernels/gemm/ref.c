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

// The drivers' own arithmetic is under test, so the oracle has another.
typedef struct {
    int64_t a, b, c, bias;
} Offsets;

static int64_t batches_of(const TorGemmArgs *args) {
    int64_t batches = 1;
    for (int d = 0; d < args->batch_rank; d++) batches *= args->batch_size[d];
    return batches;
}

static Offsets offsets_of(const TorGemmArgs *args, int64_t batch) {
    Offsets at = {0};
    for (int d = args->batch_rank - 1; d >= 0; batch /= args->batch_size[d--]) {
        int64_t i = batch % args->batch_size[d];
        at.a += i * args->a_batch[d];
        at.b += i * args->b_batch[d];
        at.c += i * args->c_batch[d];
        at.bias += i * args->bias_batch[d];
    }
    return at;
}

void tor_gemm_run_ref(const TorGemmArgs *args, void *epilogue_scratch) {
    const int64_t batches = batches_of(args);
    for (int64_t batch = 0; batch < batches; batch++) {
        Offsets at = offsets_of(args, batch);
        for (int64_t i = 0; i < args->m; i++) {
            for (int64_t j = 0; j < args->n; j++) {
                float x = element(args, batch, at.a, at.b, i, j);
                if (args->bias) x += args->bias[at.bias + j];
                if (args->epilogue)
                    tor_epilogue_run(args->epilogue, batch, i, 1, j, 1, &x, 1, epilogue_scratch);
                else
                    args->c[at.c + i * args->c_row + j] = x;
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
    const int64_t batches = batches_of(args);
    for (int64_t batch = 0; batch < batches; batch++) {
        Offsets at = offsets_of(args, batch);
        Typed t = {.args = args, .dtype = dtype, .batch = batch, .a = at.a, .b = at.b};
        for (int64_t i = 0; i < args->m; i++)
            for (int64_t j = 0; j < args->n; j++) {
                TorScalar zero = {.dtype = dtype},
                          sum = typed_element(
                              &t, i, j, args->bias ? load(&t, args->bias, at.bias + j) : zero);
                tor_scalar_store(
                    (char *)args->c + (at.c + i * args->c_row + j) * (int64_t)tor_dtype_size(dtype),
                    sum);
            }
    }
}
