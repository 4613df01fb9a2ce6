/// What the tests of the public interface share.
#ifndef TESTS_API_SUPPORT_H
#define TESTS_API_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// After the headers that it needs.
#include <cmocka.h>

#include "toroid/compile.h"

#define OK(call)                                                               \
    do {                                                                       \
        ToroidStatus ok_status_ = (call);                                      \
        if (ok_status_ != TOROID_OK) print_error("%s\n", toroid_last_error()); \
        assert_int_equal(ok_status_, TOROID_OK);                               \
    } while (0)
#define FAILS(status, text, call)                                                    \
    do {                                                                             \
        assert_int_equal((call), status);                                            \
        if (!strstr(toroid_last_error(), text)) fail_msg("%s", toroid_last_error()); \
    } while (0)
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
