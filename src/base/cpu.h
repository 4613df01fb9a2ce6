/// What the CPU can do, and how large its caches are.
#ifndef TOR_BASE_CPU_H
#define TOR_BASE_CPU_H

#include "base/status.h"

#define TOR_CPU_FEATURES(X)                   \
    X(avx2, 0)                                \
    X(fma, 1)                                 \
    X(f16c, 2)                                \
    X(avx512, 3) /* F, BW, DQ, VL together */ \
    X(avx512vnni, 4)                          \
    X(avx512bf16, 5)                          \
    X(avx512fp16, 6)                          \
    X(avxvnni, 7)                             \
    X(amx_bf16, 8)                            \
    X(amx_int8, 9)                            \
    X(neon, 16)                               \
    X(dotprod, 17)                            \
    X(i8mm, 18)                               \
    X(bf16, 19)                               \
    X(sve, 20)

enum {
    TOR_CPU_baseline = 0,
#define X(name, bit) TOR_CPU_##name = 1u << (bit),
    TOR_CPU_FEATURES(X)
#undef X
};

/// Features of this CPU that the operating system enables, less those that TOROID_CPU_MASK removes.
/// TOROID_CPU_MASK holds feature names to remove, separated by commas ("avx512,fma"), or "all".
uint32_t tor_cpu_features(void);
/// Tests only: removes features beyond the environment's; 0 restores. Not for use while plans run.
void tor_cpu_mask(uint32_t removed);
/// "avx2 fma f16c" into `text`; returns text.
const char *tor_cpu_feature_names(uint32_t features, char *text, size_t bytes);
const char *tor_cpu_model(void);  ///< "AMD EPYC 7B13"

/// Bytes; measured from the system, with usual values (32 KiB, 512 KiB, 8 MiB) where unknown.
size_t tor_cpu_l1d(void);
size_t tor_cpu_l2(void);
size_t tor_cpu_l3(void);
/// CPUs that this process may use: affinity and cgroup quota (v1 and v2) together, at least 1; a
/// quota of 1.5 counts as 2. As it was at the first call, and at the first one after a fork.
int tor_cpu_count(void);

#endif
