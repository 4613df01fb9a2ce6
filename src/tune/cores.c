#include "tune/cores.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int core;  ///< the lowest CPU of it
    int cpu;
} Place;

/// Hyperthreads of a core name the same first sibling: "2,18", "2-3" or "2".
static int core_of(int cpu) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    int first = cpu;
    if (!file) return cpu;
    if (fscanf(file, "%d", &first) != 1) first = cpu;
    fclose(file);
    return first;
}

static int compare(const void *a, const void *b) {
    const Place *x = a, *y = b;
    return x->core != y->core ? (x->core > y->core) - (x->core < y->core)
                              : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

/// The CPUs of this thread by core; returns how many.
static int places(Place out[CPU_SETSIZE]) {
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) out[n++] = (Place){core_of(cpu), cpu};
    qsort(out, (size_t)n, sizeof *out, compare);
    return n;
}

int tor_cores_count(void) {
    Place place[CPU_SETSIZE];
    int n = places(place), cores = 0;
    for (int i = 0; i < n; i++) cores += i == 0 || place[i].core != place[i - 1].core;
    return TOR_MAX(cores, 1);
}

ToroidStatus tor_cores_pin(int number, int shares, int *cpus) {
    Place place[CPU_SETSIZE];
    int n = places(place), cores = tor_cores_count(), core = -1;
    if (shares > cores)
        return tor_invalid("%d processes to tune, expected at most one for each of %d cores",
                           shares, cores);
    cpu_set_t set;
    CPU_ZERO(&set);
    *cpus = 0;
    for (int i = 0; i < n; i++) {
        core += i == 0 || place[i].core != place[i - 1].core;
        if ((int64_t)core * shares / cores != number) continue;
        CPU_SET(place[i].cpu, &set);
        ++*cpus;
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return tor_failed("cannot pin to cores: %s", strerror(errno));
    return TOROID_OK;
}
