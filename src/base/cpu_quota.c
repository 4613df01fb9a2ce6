// Affinity and control groups: how many threads can really run at once.
#include "base/cpu_quota.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"

#define PATH_BYTES 4096

static bool read_line(const char *path, char *line, size_t bytes) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool found = fgets(line, (int)bytes, file) != NULL;
    fclose(file);
    return found;
}

// v2: "max 100000" or "150000 100000" in cpu.max.
static double quota_v2(const char *group) {
    char path[PATH_BYTES + 32], line[128];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", group);
    if (!read_line(path, line, sizeof line)) return HUGE_VAL;
    if (sscanf(line, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0) return HUGE_VAL;
    return quota / period;
}

// v1: -1 or microseconds in cpu.cfs_quota_us, of cpu.cfs_period_us.
static double quota_v1(const char *group) {
    char path[PATH_BYTES + 32], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
    if (!read_line(path, quota, sizeof quota)) return HUGE_VAL;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
    if (!read_line(path, period, sizeof period)) return HUGE_VAL;
    if (atof(quota) <= 0 || atof(period) <= 0) return HUGE_VAL;
    return atof(quota) / atof(period);
}

// A limit holds for all groups below it, so the chain up to the mount counts. In a container the
// path may be one that only the host sees; the mount itself is then the group.
static double least_up_to_root(const char *mount, const char *path, double (*quota)(const char *)) {
    char group[PATH_BYTES];
    int written = snprintf(group, sizeof group, "%s%s", mount, path);
    if (written < 0 || (size_t)written >= sizeof group) return quota(mount);
    double least = HUGE_VAL;
    size_t mount_length = strlen(mount);
    for (;;) {
        least = fmin(least, quota(group));
        char *slash = strrchr(group + mount_length, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

// True if `list` ("cpu,cpuacct") has the controller "cpu".
static bool has_cpu(const char *list) {
    for (const char *item = list; item != NULL; item = strchr(item, ',')) {
        item += *item == ',';
        if (strcspn(item, ",") == 3 && strncmp(item, "cpu", 3) == 0) return true;
    }
    return false;
}

double tor_cpu_quota(const char *membership, const char *root) {
    FILE *file = fopen(membership, "re");
    if (file == NULL) return HUGE_VAL;
    double least = HUGE_VAL;
    char line[PATH_BYTES], mount[PATH_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        // "4:cpu,cpuacct:/a/b" for v1, "0::/a/b" for v2
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        if (controllers == NULL) continue;
        char *path = strchr(++controllers, ':');
        if (path == NULL) continue;
        *path++ = '\0';
        if (strcmp(path, "/") == 0) path++;
        if (*controllers == '\0') {
            least = fmin(least, least_up_to_root(root, path, quota_v2));
            snprintf(mount, sizeof mount, "%s/unified", root);
            least = fmin(least, least_up_to_root(mount, path, quota_v2));
        } else if (has_cpu(controllers)) {
            snprintf(mount, sizeof mount, "%s/%s", root, controllers);
            if (access(mount, F_OK) != 0) snprintf(mount, sizeof mount, "%s/cpu", root);
            least = fmin(least, least_up_to_root(mount, path, quota_v1));
        }
    }
    fclose(file);
    return least;
}

static int affinity_count(void) {
    // The kernel refuses a set smaller than its own; sizes go up until it accepts.
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL) break;
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return 1;
}

static _Atomic int counted;  // 0: not yet

static void forget_count(void) { counted = 0; }

static void at_fork(void) { pthread_atfork(NULL, NULL, forget_count); }

int tor_cpu_count(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int count = counted;
    if (count) return count;
    pthread_once(&once, at_fork);
    count = affinity_count();
    double quota = tor_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota < (double)count) count = (int)ceil(quota);
    counted = count = TOR_MAX(count, 1);
    return count;
}
