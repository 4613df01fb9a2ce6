/// Provider "onednn": dnnl_sgemm of the oneDNN that TOROID_ONEDNN names.
///
/// Declarations are those of oneDNN 2 and 3, whose headers are not needed to build this.
#include "library.h"

typedef struct {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} Version;

enum { SEQUENTIAL = 1, OPENMP = 2 };  // values of cpu_runtime
enum { SUCCESS = 0, OUT_OF_MEMORY = 1 };

typedef int Sgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                  int64_t ldc);

static struct {
    Sgemm *sgemm;
    OpenMp openmp;
    char version[128];
} onednn;

static ToroidStatus look_at(const ToroidProviderHost *host, void *library) {
    const Version *(*get_version)(void);
    find_function(library, "dnnl_sgemm", &onednn.sgemm);
    find_function(library, "dnnl_version", &get_version);
    if (!onednn.sgemm || !get_version)
        return fail(host, TOROID_INVALID, "TOROID_ONEDNN: %s has no dnnl_sgemm and dnnl_version",
                    getenv("TOROID_ONEDNN"));
    const Version *v = get_version();
    bool has_hash = v->hash && *v->hash && strcmp(v->hash, "N/A") != 0;
    snprintf(onednn.version, sizeof onednn.version, "oneDNN %d.%d.%d%s%s", v->major, v->minor,
             v->patch, has_hash ? " " : "", has_hash ? v->hash : "");
    if (v->cpu_runtime == SEQUENTIAL) return TOROID_OK;
    if (find_openmp(library, &onednn.openmp) && v->cpu_runtime == OPENMP) return TOROID_OK;
    return fail(host, TOROID_UNSUPPORTED,
                "%s cannot be held to one thread: its runtime is %u, expected OpenMP or none",
                onednn.version, v->cpu_runtime);
}

static ToroidStatus init(const ToroidProviderHost *host, void *user) {
    (void)user;
    return take_library(host, "TOROID_ONEDNN", "libdnnl.so.2", look_at);
}

static const char *version(void *user) {
    (void)user;
    return onednn.version;
}

static ToroidStatus gemm(const ToroidProviderHost *host, void *user, const ToroidProduct *p) {
    (void)user;
    int threads = openmp_begin(&onednn.openmp);
    int status = onednn.sgemm(p->a_transposed ? 'T' : 'N', p->b_transposed ? 'T' : 'N', p->m, p->n,
                              p->k, 1, p->a, p->a_stride, p->b, p->b_stride, 0, p->c, p->c_stride);
    openmp_end(&onednn.openmp, threads);
    if (status == SUCCESS) return TOROID_OK;
    return fail(host, status == OUT_OF_MEMORY ? TOROID_NO_MEMORY : TOROID_FAILED,
                "dnnl_sgemm returned status %d", status);
}

TOROID_API const ToroidProvider toroid_provider = {
    sizeof(ToroidProvider), TOROID_PROVIDER_ABI, "onednn", gemm, init, version, NULL};
