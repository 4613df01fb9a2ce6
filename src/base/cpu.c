// CPU features and caches. CPUID and XGETBV directly: the compilers' __builtin_cpu_supports() lacks
// some names and asks nothing of the system about AMX.
#include "base/cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static struct {
    uint32_t features;  // of the machine, less the environment's mask
    size_t l1d, l2, l3;
    char model[64];
} machine = {.l1d = 32 << 10, .l2 = 512 << 10, .l3 = 8 << 20, .model = "unknown CPU"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool detected;
static _Atomic uint32_t test_mask;

static void note_cache(int level, size_t bytes) {
    if (bytes == 0) return;
    if (level == 1) machine.l1d = bytes;
    if (level == 2) machine.l2 = bytes;
    if (level == 3) machine.l3 = bytes;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

static bool bit(uint32_t word, int index) { return word >> index & 1; }

static uint64_t enabled_state(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static uint32_t detect_features(void) {
    uint32_t a, b, c, d, found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    if (!bit(c, 27) || !bit(c, 28)) return 0;  // OSXSAVE, AVX
    uint64_t state = enabled_state();
    if ((state & 0x6) != 0x6) return 0;  // XMM and YMM registers
    if (bit(c, 12)) found |= TOR_CPU_fma;
    if (bit(c, 29)) found |= TOR_CPU_f16c;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
    uint32_t subleaves = a, leaf1 = 0, unused;
    if (subleaves >= 1) __get_cpuid_count(7, 1, &leaf1, &unused, &unused, &unused);
    if (bit(b, 5)) found |= TOR_CPU_avx2;
    if (bit(leaf1, 4)) found |= TOR_CPU_avxvnni;
    if ((state & 0xe0) == 0xe0) {  // mask registers, upper halves, registers 16 to 31
        if (bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31)) found |= TOR_CPU_avx512;
        if (bit(c, 11)) found |= TOR_CPU_avx512vnni;
        if (bit(leaf1, 5)) found |= TOR_CPU_avx512bf16;
        if (bit(d, 23)) found |= TOR_CPU_avx512fp16;
    }
    bool tiles = bit(d, 24) && (state & 0x60000) == 0x60000;
    // Linux gives tile data to a process that asks, once.
    if (tiles && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0) {
        if (bit(d, 22)) found |= TOR_CPU_amx_bf16;
        if (bit(d, 25)) found |= TOR_CPU_amx_int8;
    }
    return found;
}

static void detect_caches(void) {
    uint32_t a, b, c, d;
    // Both leaves have one format; AMD's leaf 4 is empty.
    const uint32_t leaves[] = {4, 0x8000001d};
    for (size_t i = 0; i < TOR_COUNT_OF(leaves); i++) {
        for (uint32_t index = 0; index < 16; index++) {
            if (!__get_cpuid_count(leaves[i], index, &a, &b, &c, &d)) break;
            uint32_t type = a & 0x1f;  // 0 end, 1 data, 2 instructions, 3 both
            if (type == 0) break;
            if (type == 2) continue;
            size_t ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3ff) + 1, line = (b & 0xfff) + 1;
            note_cache((int)(a >> 5 & 7), ways * partitions * line * ((size_t)c + 1));
        }
    }
}

static void detect_model(void) {
    uint32_t words[12], a, b, c, d;
    if (!__get_cpuid(0x80000000, &a, &b, &c, &d) || a < 0x80000004) return;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        __get_cpuid(0x80000002 + i, &w[0], &w[1], &w[2], &w[3]);
    }
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    char *start = text + strspn(text, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') start[--length] = '\0';
    if (length > 0) snprintf(machine.model, sizeof machine.model, "%s", start);
}

#else

static bool read_text(const char *path, char *text, size_t bytes) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool found = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    return found;
}

static void detect_caches(void) {
    for (int index = 0; index < 8; index++) {
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        char path[96], level[16], type[32], size[32];
        snprintf(path, sizeof path, "%s%d/level", folder, index);
        if (!read_text(path, level, sizeof level)) break;
        snprintf(path, sizeof path, "%s%d/type", folder, index);
        if (!read_text(path, type, sizeof type) || type[0] == 'I') continue;
        snprintf(path, sizeof path, "%s%d/size", folder, index);
        if (!read_text(path, size, sizeof size)) continue;
        char *unit;
        size_t bytes = strtoul(size, &unit, 10);
        note_cache(atoi(level), *unit == 'K' ? bytes << 10 : *unit == 'M' ? bytes << 20 : bytes);
    }
}

#if defined(__aarch64__)
#include <sys/auxv.h>

static uint32_t detect_features(void) {
    // Bits of the kernel's asm/hwcap.h; older system headers lack the newer ones.
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    uint32_t found = 0;
    if (first >> 1 & 1) found |= TOR_CPU_neon;
    if (first >> 20 & 1) found |= TOR_CPU_dotprod;
    if (first >> 22 & 1) found |= TOR_CPU_sve;
    if (second >> 13 & 1) found |= TOR_CPU_i8mm;
    if (second >> 14 & 1) found |= TOR_CPU_bf16;
    return found;
}

static void detect_model(void) {
    char text[32];
    const char *path = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    if (!read_text(path, text, sizeof text)) return;
    unsigned long midr = strtoul(text, NULL, 16);
    snprintf(machine.model, sizeof machine.model, "Arm implementer 0x%02lx part 0x%03lx",
             midr >> 24 & 0xff, midr >> 4 & 0xfff);
}
#else
static uint32_t detect_features(void) { return 0; }
static void detect_model(void) {}
#endif
#endif

// Kernels of a higher level use the lower level's instructions too, so a feature goes with those
// that it builds on.
static uint32_t without_orphans(uint32_t features) {
    static const struct {
        uint32_t feature, needs;
    } rules[] = {
        {TOR_CPU_avx512, TOR_CPU_avx2 | TOR_CPU_fma | TOR_CPU_f16c},
        {TOR_CPU_avxvnni, TOR_CPU_avx2},
        {TOR_CPU_avx512vnni, TOR_CPU_avx512},
        {TOR_CPU_avx512bf16, TOR_CPU_avx512},
        {TOR_CPU_avx512fp16, TOR_CPU_avx512},
        {TOR_CPU_amx_bf16, TOR_CPU_avx512},
        {TOR_CPU_amx_int8, TOR_CPU_avx512},
        {TOR_CPU_dotprod, TOR_CPU_neon},
        {TOR_CPU_i8mm, TOR_CPU_neon},
        {TOR_CPU_bf16, TOR_CPU_neon},
        {TOR_CPU_sve, TOR_CPU_neon},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(rules); i++) {
        if ((features & rules[i].needs) != rules[i].needs) features &= ~rules[i].feature;
    }
    return features;
}

static const struct {
    const char *name;
    uint32_t feature;
} names[] = {
#define X(name, bit) {#name, TOR_CPU_##name},
    TOR_CPU_FEATURES(X)
#undef X
};

static uint32_t mask_of(const char *text) {
    uint32_t mask = 0;
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ", ");
        bool known = length == 0;
        if (length == 3 && strncmp(text, "all", 3) == 0) {
            mask = UINT32_MAX;
            known = true;
        }
        for (size_t i = 0; i < TOR_COUNT_OF(names); i++) {
            if (strlen(names[i].name) == length && strncmp(text, names[i].name, length) == 0) {
                mask |= names[i].feature;
                known = true;
            }
        }
        if (!known) tor_log(0, "TOROID_CPU_MASK: no feature is called %.*s", (int)length, text);
        text += length;
        text += strspn(text, ", ");
    }
    return mask;
}

static void detect(void) {
    uint32_t found = detect_features() & ~mask_of(getenv("TOROID_CPU_MASK"));
    machine.features = without_orphans(found);
    detect_caches();
    detect_model();
    atomic_store_explicit(&detected, true, memory_order_release);
}

// Planning asks often: one load instead of a call once the answer is there.
static inline void need(void) {
    if (!atomic_load_explicit(&detected, memory_order_acquire)) pthread_once(&once, detect);
}

uint32_t tor_cpu_features(void) {
    need();
    uint32_t removed = atomic_load_explicit(&test_mask, memory_order_relaxed);
    return removed == 0 ? machine.features : without_orphans(machine.features & ~removed);
}

void tor_cpu_mask(uint32_t removed) { atomic_store(&test_mask, removed); }

const char *tor_cpu_feature_names(uint32_t features, char *text, size_t bytes) {
    size_t length = 0;
    if (bytes > 0) text[0] = '\0';
    for (size_t i = 0; i < TOR_COUNT_OF(names); i++) {
        if (!(features & names[i].feature)) continue;
        size_t need = strlen(names[i].name) + (length > 0);
        if (length + need + 1 > bytes) break;
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", length > 0 ? " " : "",
                                   names[i].name);
    }
    return text;
}

const char *tor_cpu_model(void) {
    need();
    return machine.model;
}

size_t tor_cpu_l1d(void) {
    need();
    return machine.l1d;
}

size_t tor_cpu_l2(void) {
    need();
    return machine.l2;
}

size_t tor_cpu_l3(void) {
    need();
    return machine.l3;
}
