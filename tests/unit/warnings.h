/// What was told at level 0 while `hear` is the hook of the log.
#ifndef TESTS_UNIT_WARNINGS_H
#define TESTS_UNIT_WARNINGS_H

#include <stdio.h>

#include "base/log.h"

static char warnings[4096];  ///< the last one
static int n_warnings;

static inline void hear(void *user, int level, const char *message) {
    (void)user;
    if (level > 0) return;
    n_warnings++;
    snprintf(warnings, sizeof warnings, "%s", message);
}

#endif
