/// The CPU share that control groups leave to this process.
#ifndef TOR_BASE_CPU_QUOTA_H
#define TOR_BASE_CPU_QUOTA_H

#include "base/status.h"

/// CPUs' worth of time per period, the least of all groups from the process's own up to the root;
/// HUGE_VAL without a limit.
/// @param membership  a file like /proc/self/cgroup
/// @param root        where the hierarchies are mounted, usually /sys/fs/cgroup
double tor_cpu_quota(const char *membership, const char *root);

#endif
