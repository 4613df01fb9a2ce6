// Error messages: one buffer a thread, so that a failure needs no memory.
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 1024

static _Thread_local char message[MESSAGE_BYTES];

const char *toroid_last_error(void) { return message; }

const char *toroid_status_name(ToroidStatus status) {
    switch (status) {
        case TOROID_OK: return "ok";
        case TOROID_INVALID: return "invalid argument";
        case TOROID_UNSUPPORTED: return "unsupported";
        case TOROID_NO_MEMORY: return "out of memory";
        case TOROID_FAILED: return "failed";
        case TOROID_INVALID_INDEX: return "index out of range";
        case TOROID_INVALID_DATA: return "invalid data";
    }
    return "unknown status";
}

// An argument may be the current message itself, so the text is built beside it.
static void set_message(const char *format, va_list args) {
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    memcpy(message, text, strlen(text) + 1);
}

#define SETTER(name, status)                     \
    ToroidStatus name(const char *format, ...) { \
        va_list args;                            \
        va_start(args, format);                  \
        set_message(format, args);               \
        va_end(args);                            \
        return status;                           \
    }
SETTER(tor_invalid, TOROID_INVALID)
SETTER(tor_refuse, TOROID_UNSUPPORTED)
SETTER(tor_failed, TOROID_FAILED)
SETTER(tor_invalid_index, TOROID_INVALID_INDEX)
SETTER(tor_invalid_data, TOROID_INVALID_DATA)

// `text` may be the current message.
ToroidStatus tor_set_error(ToroidStatus status, const char *text) {
    size_t length = text ? strnlen(text, sizeof message - 1) : 0;
    memmove(message, text ? text : "", length);
    message[length] = 0;
    return status;
}

ToroidStatus tor_no_memory(void) { return tor_set_error(TOROID_NO_MEMORY, "out of memory"); }

ToroidStatus tor_error_prefix(ToroidStatus status, const char *format, ...) {
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t length = written < 0 ? 0 : TOR_MIN((size_t)written, sizeof text - 3);
    // What does not fit is cut at the end.
    size_t kept = TOR_MIN(strlen(message), sizeof text - length - 3);
    memmove(message + length + 2, message, kept);
    memcpy(message, text, length);
    memcpy(message + length, ": ", 2);
    message[length + 2 + kept] = '\0';
    return status;
}
