/// Status codes and error messages shared by every Toroid function that can fail.
///
/// A fallible function returns a ToroidStatus and passes its results through pointers. The message
/// of the last failure on the calling thread is kept until the next failure on it.
#ifndef TOROID_STATUS_H
#define TOROID_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TOROID_API __attribute__((visibility("default")))
#else
#define TOROID_API
#endif

/// How a call ended.
typedef enum {
    /// The results are there.
    TOROID_OK = 0,
    /// The caller passed something wrong; the message says what was expected.
    TOROID_INVALID,
    /// A correct request that this build or machine cannot serve: try the next way.
    TOROID_UNSUPPORTED,
    /// An allocation failed; nothing was lost and the call may be repeated.
    TOROID_NO_MEMORY,
    /// Something outside the library failed (a callback, a file).
    TOROID_FAILED,
    /// An index in the data is out of range.
    TOROID_INVALID_INDEX,
    /// Other values in the data are wrong: an integer divisor of zero.
    TOROID_INVALID_DATA,
} ToroidStatus;

/// Why the last failing call of this thread failed: what was named, what was expected, what came.
/// @return "" if nothing failed yet; the library's, until the next failure on this thread
TOROID_API const char *toroid_last_error(void);

/// A status in words, for messages.
/// @return "ok", "invalid argument", ...; "unknown status" for a wrong number. Never freed
TOROID_API const char *toroid_status_name(ToroidStatus status);

#ifdef __cplusplus
}
#endif
#endif
