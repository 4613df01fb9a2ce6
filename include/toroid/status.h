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

typedef enum {
    TOROID_OK = 0,
    TOROID_INVALID,      ///< the caller passed something wrong; the message says what was expected
    TOROID_UNSUPPORTED,  ///< a correct request that this build or machine cannot serve: try the
                         ///< next way
    TOROID_NO_MEMORY,    ///< an allocation failed; nothing was lost and the call may be repeated
    TOROID_FAILED,       ///< something outside the library failed (a callback, a file)
    TOROID_INVALID_INDEX,  ///< an index in the data is out of range
    TOROID_INVALID_DATA,   ///< other values in the data are wrong: an integer divisor of zero
} ToroidStatus;

/// Message of the last failure on this thread; "" if there was none. Borrowed until the next
/// failure.
TOROID_API const char *toroid_last_error(void);

/// Name of a status: "ok", "invalid argument", ...
TOROID_API const char *toroid_status_name(ToroidStatus status);

#ifdef __cplusplus
}
#endif
#endif
