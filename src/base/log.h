/// The library's only way to talk: a hook that the host sets. Default: standard error.
#ifndef TOR_BASE_LOG_H
#define TOR_BASE_LOG_H

#include "base/status.h"

typedef void (*TorLogHook)(void *user, int level, const char *message);
void tor_log_set_hook(TorLogHook hook, void *user);
/// TOROID_VERBOSE, 0 by default: 0 warnings only, 1 summary, 2 passes and times, 3 everything.
int tor_log_level(void);
/// Sent to the hook if `level` <= tor_log_level(). Level 0 is a warning.
void tor_log(int level, const char *format, ...) TOR_PRINTF(2, 3);
/// Monotonic seconds.
double tor_now(void);

#endif
