/// How functions inside the library report failure: set a message, return a status.
#ifndef TOR_BASE_STATUS_H
#define TOR_BASE_STATUS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "toroid/status.h"

#define TOR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/// Each sets this thread's message and returns its status, so that a caller can `return
/// tor_refuse(...)`.
ToroidStatus tor_invalid(const char *format, ...) TOR_PRINTF(1, 2);
ToroidStatus tor_refuse(const char *format, ...) TOR_PRINTF(1, 2);
ToroidStatus tor_failed(const char *format, ...) TOR_PRINTF(1, 2);
ToroidStatus tor_no_memory(void);
/// Of the values that a run met: Python raises IndexError for the one, RuntimeError for the other.
ToroidStatus tor_invalid_index(const char *format, ...) TOR_PRINTF(1, 2);
ToroidStatus tor_invalid_data(const char *format, ...) TOR_PRINTF(1, 2);

/// Sets the message, "" for NULL, and returns `status`.
ToroidStatus tor_set_error(ToroidStatus status, const char *text);

/// Puts "<prefix>: " before the current message; returns `status` unchanged.
ToroidStatus tor_error_prefix(ToroidStatus status, const char *format, ...) TOR_PRINTF(2, 3);

/// Returns early with the status of `call` unless it is TOROID_OK.
#define TOR_TRY(call)                                             \
    do {                                                          \
        ToroidStatus tor_try_status_ = (call);                    \
        if (tor_try_status_ != TOROID_OK) return tor_try_status_; \
    } while (0)

#define TOR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TOR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TOR_MAX(a, b) ((a) > (b) ? (a) : (b))

/// Ceiling division and rounding up for non-negative a and positive b.
static inline int64_t tor_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t tor_round_up(int64_t a, int64_t b) { return tor_ceil_div(a, b) * b; }

#endif
