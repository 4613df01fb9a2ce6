/// Sort's kernels for one instruction set.
///
/// An element becomes an unsigned key that orders as the element does (floats: Herf, "Radix
/// tricks", 2001; NaN is the largest key, -0.0 has that of 0.0), and a key with its position an
/// *entry*. Entries are all different and in one total order, so that any way of sorting them is
/// stable, and any way of selecting gives the same. `descending` inverts the key, not the order.
#include "base/simd.h"
#include "kernels/sort/lines.h"

TOR_INLINE uint64_t key_of_float(uint64_t bits, int width, uint64_t infinity) {
    uint64_t sign = 1ull << (width - 1), all = sign | (sign - 1);
    uint64_t magnitude = bits & (sign - 1);
    uint64_t key = (bits & sign) && magnitude ? all & ~bits : sign | magnitude;
    return magnitude > infinity ? all : key;
}

TOR_INLINE uint64_t key_of_bits(uint64_t bits, TorDtype dtype) {
    switch (dtype) {
        case TOR_bool: return bits != 0;
        case TOR_uint8: return bits;
        case TOR_int8: return bits ^ 0x80;
        case TOR_int16: return bits ^ 0x8000;
        case TOR_int32: return bits ^ 0x80000000u;
        case TOR_int64: return bits ^ 1ull << 63;
        case TOR_float16: return key_of_float(bits, 16, 0x7c00);
        case TOR_bfloat16: return key_of_float(bits, 16, 0x7f80);
        case TOR_float32: return key_of_float(bits, 32, 0x7f800000);
        default: return key_of_float(bits, 64, 0x7ff0000000000000);
    }
}

/// All bits that a key of the type may have.
TOR_INLINE uint64_t key_mask(TorDtype dtype) { return ~0ull >> (64 - 8 * tor_dtype_size(dtype)); }

typedef struct {
    uint64_t key, index;
} Wide;

// Keys of up to 32 bits stand above a position of 32 bits in one integer.
#define ENTRY uint64_t
#define NAME(name) name##_narrow
#define MAKE(key, index) ((key) << 32 | (index))
#define KEY(entry) ((entry) >> 32)
#define INDEX(entry) ((int64_t)((entry)&UINT32_MAX))
#define LESS(a, b) ((a) < (b))
#define RADIX_FROM 256
#define SYMBOL TOR_KERNEL_IMPL(tor_sort_x32, lines)
#include "kernels/sort/entries_tmpl.h"

#define ENTRY Wide
#define NAME(name) name##_wide
#define MAKE(key, index) ((Wide){key, (uint64_t)(index)})
#define KEY(entry) ((entry).key)
#define INDEX(entry) ((int64_t)(entry).index)
#define LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))
#define RADIX_FROM 1024
#define SYMBOL TOR_KERNEL_IMPL(tor_sort_x64, lines)
#include "kernels/sort/entries_tmpl.h"
