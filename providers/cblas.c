/// Provider "cblas": cblas_sgemm of the library that TOROID_CBLAS names, such as OpenBLAS or BLIS.
///
/// The library is held to one thread, in the whole process where it has a function for that. One
/// with 64-bit integers is refused, and so is OpenBLAS without threads, whose calls must not meet.
#include "library.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };  // of cblas.h

typedef void Sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    Sgemm *sgemm;
    OpenMp openmp;
    char version[160];
} cblas;

/// OpenBLAS says in its configuration with what it was made.
static ToroidStatus look_at_openblas(const ToroidProviderHost *host, void *library) {
    const char *(*config)(void);
    int (*parallel)(void);
    void (*set_threads)(int);
    find_function(library, "openblas_get_config", &config);
    find_function(library, "openblas_get_parallel", &parallel);
    find_function(library, "openblas_set_num_threads", &set_threads);
    if (!config || !parallel || !set_threads) return TOROID_OK;
    snprintf(cblas.version, sizeof cblas.version, "%s", config());
    if (strstr(config(), "USE64BITINT"))
        return fail(host, TOROID_UNSUPPORTED, "%s has 64-bit integers, expected 32", config());
    if (parallel() == 0)
        return fail(host, TOROID_UNSUPPORTED,
                    "%s was made without threads: calls from several threads would meet", config());
    set_threads(1);
    return TOROID_OK;
}

static ToroidStatus look_at_blis(const ToroidProviderHost *host, void *library) {
    const char *(*version)(void);
    long (*integer_bits)(void);
    void (*set_threads)(long);
    find_function(library, "bli_info_get_version_str", &version);
    find_function(library, "bli_info_get_blas_int_type_size", &integer_bits);
    find_function(library, "bli_thread_set_num_threads", &set_threads);
    if (!version || !integer_bits || !set_threads) return TOROID_OK;
    snprintf(cblas.version, sizeof cblas.version, "BLIS %s", version());
    if (integer_bits() != 32)
        return fail(host, TOROID_UNSUPPORTED, "%s has %ld-bit integers, expected 32", cblas.version,
                    integer_bits());
    set_threads(1);
    return TOROID_OK;
}

static ToroidStatus look_at(const ToroidProviderHost *host, void *library) {
    snprintf(cblas.version, sizeof cblas.version, "%s", getenv("TOROID_CBLAS"));
    find_function(library, "cblas_sgemm", &cblas.sgemm);
    if (!cblas.sgemm)
        return fail(host, TOROID_INVALID, "TOROID_CBLAS: %s has no cblas_sgemm", cblas.version);
    find_openmp(library, &cblas.openmp);
    ToroidStatus status = look_at_openblas(host, library);
    return status == TOROID_OK ? look_at_blis(host, library) : status;
}

static ToroidStatus init(const ToroidProviderHost *host, void *user) {
    (void)user;
    return take_library(host, "TOROID_CBLAS", "libopenblas.so.0", look_at);
}

static const char *version(void *user) {
    (void)user;
    return cblas.version;
}

static ToroidStatus gemm(const ToroidProviderHost *host, void *user, const ToroidProduct *p) {
    (void)host, (void)user;
    int threads = openmp_begin(&cblas.openmp);
    cblas.sgemm(ROW_MAJOR, p->a_transposed ? TRANS : NO_TRANS, p->b_transposed ? TRANS : NO_TRANS,
                (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)p->a_stride, p->b, (int)p->b_stride,
                0, p->c, (int)p->c_stride);
    openmp_end(&cblas.openmp, threads);
    return TOROID_OK;
}

TOROID_API const ToroidProvider toroid_provider = {
    sizeof(ToroidProvider), TOROID_PROVIDER_ABI, "cblas", gemm, init, version, NULL};
