/// The part of DLPack 1.x that crosses the Python door: a tensor's description, a tensor with an
/// owner, and the table of functions that torch.Tensor carries as `__dlpack_c_exchange_api__`.
/// Layouts are DLPack's own ("DLPack: Open In Memory Tensor Structure", version 1.3).
#ifndef TOROID_PYTHON_DLPACK_H
#define TOROID_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1 };

/// The capsule's name.
#define DLPACK_EXCHANGE_NAME "dlpack_exchange_api"

enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4, DLPACK_BOOL = 6 };

typedef struct {
    uint32_t major, minor;
} DLPackVersion;

typedef struct {
    int32_t type, id;
} DLDevice;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;  ///< elements
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensor;

typedef struct DLPackHeader {
    DLPackVersion version;
    struct DLPackHeader *prev_api;
} DLPackHeader;

/// All return 0, or -1 with a Python exception set.
typedef struct {
    DLPackHeader header;
    int (*allocate)(DLTensor *prototype, DLManagedTensor **out, void *error_ctx,
                    void (*set_error)(void *error_ctx, const char *kind, const char *message));
    int (*from_py)(void *object, DLManagedTensor **out);
    int (*to_py)(DLManagedTensor *tensor, void **out);  ///< takes `tensor` over
    int (*borrow)(void *object, DLTensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} DLPackExchange;

#endif
