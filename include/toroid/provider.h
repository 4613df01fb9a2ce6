/// Providers: matrix products of other libraries, as candidates of the tuner.
///
/// A provider is asked for by name: TOROID_TUNABLEOP_PROVIDERS in the environment, or
/// toroid_tune_set("PROVIDERS", "cblas"). Its products are then timed beside Toroid's own, on the
/// sizes that come, and have to give the same answer.
#ifndef TOROID_PROVIDER_H
#define TOROID_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "toroid/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Raised when something here changes its meaning; new fields at the end of a struct do not.
#define TOROID_PROVIDER_ABI 1

/// The library, for providers.
typedef struct ToroidProviderHost {
    size_t struct_bytes;  ///< how much of this the library has
    int abi;
    /// Sets the message of this thread and returns `status`.
    ToroidStatus (*set_error)(ToroidStatus status, const char *message);
} ToroidProviderHost;

/// c[m, n] = a[m, k] * b[k, n] in float32: alpha is 1 and beta 0, so what c held before counts for
/// nothing, NaN included.
///
/// Element (i, p) of a is a[i * a_stride + p], or a[p * a_stride + i] where a_transposed; element
/// (p, j) of b is b[p * b_stride + j], or b[j * b_stride + p] where b_transposed; element (i, j) of
/// c is c[i * c_stride + j]. Strides are at least as long as what they step over, sizes at least 1,
/// and all of them less than 2^31. c overlaps neither a nor b, and memory between its rows is not
/// to be written. Alignment is that of float.
typedef struct ToroidProduct {
    size_t struct_bytes;  ///< how much of this the library fills
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t a_stride, b_stride, c_stride;
    bool a_transposed, b_transposed;
} ToroidProduct;

/// Another library's kernels.
typedef struct ToroidProvider {
    size_t struct_bytes;  ///< sizeof(ToroidProvider): fields beyond it are taken for 0
    int abi;              ///< TOROID_PROVIDER_ABI
    const char *name;     ///< letters, digits, '_', '-' and '.'; at most 63
    /// Computes a product in the thread that calls, without threads of its own: Toroid cuts large
    /// products and calls for the parts, from several threads at once. The order of a sum may
    /// depend on sizes, strides and transposition, on nothing else.
    /// @return TOROID_UNSUPPORTED for what it does not take. Set the reason with host->set_error().
    ///         While tuning, a failure rejects the candidate; in a run, Toroid computes the product
    ///         itself and asks this provider no more
    ToroidStatus (*gemm_f32)(const ToroidProviderHost *host, void *user,
                             const ToroidProduct *product);
    // What follows may be 0.
    /// Called before anything else, by one thread; again after a failure, if the provider is asked
    /// for anew.
    ToroidStatus (*init)(const ToroidProviderHost *host, void *user);
    /// Of the library behind it, valid until the process ends; called after init. Results of
    /// another version are not used.
    const char *(*version)(void *user);
    void *user;  ///< passed on to the functions
} ToroidProvider;

/// Adds a provider until the process ends. The name is copied.
/// @return TOROID_INVALID for a name that is taken, or a struct that is not what was expected
TOROID_API ToroidStatus toroid_provider_register(const ToroidProvider *provider);

/// A plugin is a shared object toroid_provider_<name>.so in one of the folders of
/// TOROID_BACKEND_PATH, to which all that is said of backends applies (toroid/backend.h). It has
/// one symbol, `TOROID_API const ToroidProvider toroid_provider = {sizeof(ToroidProvider), ...};`
/// and is loaded when it is first asked for.
#define TOROID_PROVIDER_SYMBOL "toroid_provider"

#ifdef __cplusplus
}
#endif
#endif
