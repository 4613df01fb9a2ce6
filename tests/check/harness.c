// The frame of the check programs.
#include "harness.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/peak.h"

#define GUARD_BYTES 256
#define MAX_BUFFERS 64
#define MAX_MESSAGES 20  // a test; the rest is counted only
#define ROUNDS 31

typedef struct {
    const char *name;
    uint32_t needs;  // runs where the machine has these
    uint32_t keeps;  // with these left
} Level;

static const Level levels[] = {
    {"generic", 0, 0},
#if defined(__x86_64__)
    {"avx2", TOR_CPU_avx2 | TOR_CPU_fma,
     TOR_CPU_avx2 | TOR_CPU_fma | TOR_CPU_f16c | TOR_CPU_avxvnni},
    {"avx512", TOR_CPU_avx512 | TOR_CPU_avx2 | TOR_CPU_fma, UINT32_MAX},
#elif defined(__aarch64__)
    {"neon", TOR_CPU_neon, TOR_CPU_neon | TOR_CPU_dotprod | TOR_CPU_i8mm | TOR_CPU_bf16},
    {"sve", TOR_CPU_sve, UINT32_MAX},
#endif
};

typedef struct {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *data;
    size_t bytes;
    size_t before, after;  // guard bytes
} Buffer;

static struct {
    const Level *level;
    uint64_t seed, random;
    bool bench, verbose;
    const char *filter, *only_level;
    char name[512];  // of the open case
    const char *test;
    bool failed;
    int64_t passed, failures, messages;
    double worst;  // largest error against its tolerance, of this test
    Buffer buffer[MAX_BUFFERS];
    int buffers;
} check;

const char *tor_check_level(void) { return check.level->name; }

// Random numbers: SplitMix64 (Steele, Lea & Flood 2014).
uint64_t tor_check_random(void) {
    uint64_t z = check.random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int64_t tor_check_range(int64_t least, int64_t most) {
    return least + (int64_t)(tor_check_random() % (uint64_t)(most - least + 1));
}

double tor_check_uniform(void) { return (double)(int64_t)tor_check_random() * 0x1p-63; }

bool tor_check_coin(void) { return tor_check_random() >> 63; }

static void seed_for(const char *text) {
    check.random = check.seed;
    for (; *text; text++) check.random = (check.random ^ (uint8_t)*text) * 0x100000001B3u;
}

// What failed since the last case ended, which no case counts, is one failure.
static void count_loose_failure(void) {
    if (check.failed) check.failures++;
    check.failed = false;
}

void tor_check_case(const char *format, ...) {
    count_loose_failure();
    va_list args;
    va_start(args, format);
    vsnprintf(check.name, sizeof check.name, format, args);
    va_end(args);
    if (check.verbose) printf("  %s: %s\n", check.test, check.name);
}

void tor_check_fail(const char *format, ...) {
    check.failed = true;
    if (check.messages++ >= MAX_MESSAGES) return;
    va_list args;
    va_start(args, format);
    printf("FAILED %s [%s] %s: ", check.test, check.level->name, check.name);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

void tor_check_done(void) {
    tor_check_guards();
    for (int i = 0; i < check.buffers; i++) munmap(check.buffer[i].map, check.buffer[i].map_bytes);
    check.buffers = 0;
    if (check.failed)
        check.failures++;
    else
        check.passed++;
    check.failed = false;
}

void *tor_check_buffer(size_t bytes, size_t align) {
    if (check.buffers == MAX_BUFFERS) {
        fprintf(stderr, "more than %d buffers in a case\n", MAX_BUFFERS);
        exit(2);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t slack = GUARD_BYTES + 256 + align;  // guard before, random offset
    size_t body = (slack + bytes + GUARD_BYTES + page - 1) / page * page;
    Buffer *b = &check.buffer[check.buffers++];
    b->bytes = bytes;
    b->map_bytes = body + page;
    b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->map == MAP_FAILED || mprotect(b->map + body, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(2);
    }
    if (tor_check_coin()) {
        b->data = b->map + (body - bytes) / align * align;
    } else {
        size_t offset = GUARD_BYTES + (size_t)tor_check_range(0, 255);
        b->data = b->map + (offset + align - 1) / align * align;
    }
    b->before = (size_t)(b->data - b->map);
    b->after = TOR_MIN(body - b->before - bytes, (size_t)GUARD_BYTES);
    b->before = TOR_MIN(b->before, (size_t)GUARD_BYTES);
    memset(b->data - b->before, TOR_CHECK_GUARD, b->before + bytes + b->after);
    return b->data;
}

void tor_check_run(TorRangeFn run, const void *args, int64_t items, size_t scratch_bytes,
                   int threads) {
    TorTeam team;
    size_t each = (size_t)tor_round_up((int64_t)scratch_bytes, TOR_CACHE_LINE),
           bytes = each * (size_t)threads;
    uint8_t *scratch = tor_alloc(bytes + TOR_CACHE_LINE);  // draws no random number
    if (!scratch) exit(2);
    memset(scratch, 0xFF, bytes + TOR_CACHE_LINE);
    tor_team_begin(&team, threads, scratch, each);
    tor_team_run(&team, run, args, items);
    tor_team_end(&team);
    for (size_t i = bytes; i < bytes + TOR_CACHE_LINE; i++)
        if (scratch[i] != 0xFF) {
            tor_check_fail("wrote past its scratch of %zu bytes", each);
            break;
        }
    tor_free(scratch);
}

static bool is_guard(const uint8_t *p, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != TOR_CHECK_GUARD) return false;
    return true;
}

void tor_check_guards(void) {
    for (int i = 0; i < check.buffers; i++) {
        Buffer *b = &check.buffer[i];
        if (!is_guard(b->data - b->before, b->before))
            tor_check_fail("wrote before buffer %d (of %zu bytes)", i, b->bytes);
        if (!is_guard(b->data + b->bytes, b->after))
            tor_check_fail("wrote beyond buffer %d (of %zu bytes)", i, b->bytes);
        memset(b->data - b->before, TOR_CHECK_GUARD, b->before);
        memset(b->data + b->bytes, TOR_CHECK_GUARD, b->after);
    }
}

static void store(TorDtype dtype, void *data, int64_t i, double value) {
    switch (dtype) {
        case TOR_bool: ((uint8_t *)data)[i] = value != 0; break;
        case TOR_uint8: ((uint8_t *)data)[i] = (uint8_t)(int64_t)value; break;
        case TOR_int8: ((int8_t *)data)[i] = (int8_t)value; break;
        case TOR_int16: ((int16_t *)data)[i] = (int16_t)value; break;
        case TOR_int32: ((int32_t *)data)[i] = (int32_t)value; break;
        case TOR_int64: ((int64_t *)data)[i] = (int64_t)value; break;
        case TOR_float16: ((uint16_t *)data)[i] = tor_f32_to_f16((float)value); break;
        case TOR_bfloat16: ((uint16_t *)data)[i] = tor_f32_to_bf16((float)value); break;
        case TOR_float32: ((float *)data)[i] = (float)value; break;
        case TOR_float64: ((double *)data)[i] = value; break;
        default: break;
    }
}

double tor_check_value(TorDtype dtype, const void *data, int64_t i) {
    switch (dtype) {
        case TOR_bool:
        case TOR_uint8: return ((const uint8_t *)data)[i];
        case TOR_int8: return ((const int8_t *)data)[i];
        case TOR_int16: return ((const int16_t *)data)[i];
        case TOR_int32: return ((const int32_t *)data)[i];
        case TOR_int64: return (double)((const int64_t *)data)[i];
        case TOR_float16: return tor_f16_to_f32(((const uint16_t *)data)[i]);
        case TOR_bfloat16: return tor_bf16_to_f32(((const uint16_t *)data)[i]);
        case TOR_float32: return ((const float *)data)[i];
        case TOR_float64: return ((const double *)data)[i];
        default: return 0;
    }
}

static double special(TorDtype dtype) {
    static const double smallest[] = {[TOR_float16] = 0x1p-24,
                                      [TOR_bfloat16] = 0x1p-133,
                                      [TOR_float32] = 0x1p-149,
                                      [TOR_float64] = 0x1p-1074};
    static const double largest[] = {[TOR_float16] = 65504,
                                     [TOR_bfloat16] = 0x1.fep127,
                                     [TOR_float32] = 0x1.fffffep127,
                                     [TOR_float64] = 0x1.fffffffffffffp1023};
    switch (tor_check_range(0, 8)) {
        case 0: return NAN;
        case 1: return INFINITY;
        case 2: return -INFINITY;
        case 3: return 0.0;
        case 4: return -0.0;
        case 5: return smallest[dtype] * (double)tor_check_range(-9, 9);
        case 6: return largest[dtype];
        case 7: return -largest[dtype];
        default: return (double)tor_check_range(-50, 50) * 0.5;
    }
}

void tor_check_fill(TorDtype dtype, void *data, int64_t count, TorFill fill) {
    bool floats = tor_dtype_is_float(dtype);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TOR_bool) {
            store(dtype, data, i, tor_check_coin());
        } else if (fill == TOR_FILL_EXACT) {
            store(dtype, data, i, (double)tor_check_range(dtype == TOR_uint8 ? 0 : -4, 4));
        } else if (!floats) {
            uint64_t bits = tor_check_random();
            memcpy((uint8_t *)data + (size_t)i * tor_dtype_size(dtype), &bits,
                   tor_dtype_size(dtype));
        } else if (fill == TOR_FILL_SPECIAL && tor_check_range(0, 7) == 0) {
            store(dtype, data, i, special(dtype));
        } else {
            store(dtype, data, i, tor_check_uniform());
        }
    }
}

double tor_check_compare(TorDtype dtype, const void *got, const void *want, int64_t count,
                         double rtol, double atol) {
    size_t size = tor_dtype_size(dtype);
    bool floats = tor_dtype_is_float(dtype);
    double worst = 0;
    int64_t zeros = 0, seen = 0, wrong = 0, first = -1;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *g = (const uint8_t *)got + (size_t)i * size,
                      *w = (const uint8_t *)want + (size_t)i * size;
        bool same = memcmp(g, w, size) == 0;
        if (same && is_guard(w, size) && size > 1) continue;
        seen++;
        double x = tor_check_value(dtype, got, i), y = tor_check_value(dtype, want, i);
        if (y == 0) zeros++;
        if (same || (floats && (x == y || (isnan(x) && isnan(y))))) continue;
        double error = fabs(x - y), allowed = atol + rtol * fabs(y);
        double ratio = floats && allowed > 0 && isfinite(y) ? error / allowed : INFINITY;
        if (!(ratio <= 1)) {
            if (first < 0) first = i;
            wrong++;
        }
        if (!(ratio <= worst)) worst = ratio;
    }
    if (wrong)
        tor_check_fail(
            "%lld of %lld wrong, the first at %lld: got %.9g, want %.9g; largest error %.3g of the "
            "tolerance",
            (long long)wrong, (long long)seen, (long long)first, tor_check_value(dtype, got, first),
            tor_check_value(dtype, want, first), worst);
    if (dtype != TOR_bool && seen >= 64 && zeros * 10 > seen * 9)
        tor_check_fail("%lld of %lld expected values are zero: not to be trusted", (long long)zeros,
                       (long long)seen);
    if (worst > check.worst) check.worst = worst;
    return worst;
}

void tor_check_same(const void *got, const void *want, size_t bytes) {
    const uint8_t *g = got, *w = want;
    for (size_t i = 0; i < bytes; i++) {
        if (g[i] == w[i]) continue;
        tor_check_fail("byte %zu of %zu differs", i, bytes);
        return;
    }
}

double tor_check_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A thread's own time: what other processes take does not count. Kernels of several threads need
// the wall clock.
static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static TorClock bench_clock = thread_seconds;

double tor_check_peak_flops(void) { return tor_peak_flops(bench_clock); }

static uint8_t *stream;

double tor_check_read_bytes(void) {
    size_t bytes = tor_peak_read_bytes();
    if (!stream) {
        stream = tor_alloc(bytes);
        if (!stream) {
            fprintf(stderr, "%s\n", toroid_last_error());
            exit(2);
        }
        memset(stream, 0, bytes);
    }
    return tor_peak_read(stream, bytes, bench_clock);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

// One round: enough calls for 2 ms.
static double time_round(TorBenchFn fn, void *ctx, int64_t calls) {
    double start = bench_clock();
    for (int64_t i = 0; i < calls; i++) fn(ctx);
    return (bench_clock() - start) / (double)calls;
}

static int64_t calls_a_round(TorBenchFn fn, void *ctx) {
    fn(ctx);
    double once = time_round(fn, ctx, 1);
    return once < 0.002 ? (int64_t)(0.002 / fmax(once, 1e-8)) + 1 : 1;
}

double tor_check_time(TorBenchFn fn, void *ctx) {
    double seconds[ROUNDS];
    int64_t calls = calls_a_round(fn, ctx);
    for (int i = 0; i < ROUNDS; i++) seconds[i] = time_round(fn, ctx, calls);
    return median(seconds, ROUNDS);
}

static void bench(const char *name, const char *unit, double amount, double (*peak)(void),
                  int times, TorBenchFn fn, void *ctx) {
    double rate[ROUNDS], ratio[ROUNDS], peaks[ROUNDS];
    bench_clock = times > 1 ? tor_check_seconds : thread_seconds;
    int64_t calls = calls_a_round(fn, ctx);
    for (int i = 0; i < ROUNDS; i++) {
        double before = peak();
        rate[i] = amount / time_round(fn, ctx, calls);
        peaks[i] = fmax(before, peak()) * times;
        ratio[i] = rate[i] / peaks[i];
    }
    double r = median(ratio, ROUNDS), v = median(rate, ROUNDS), p = median(peaks, ROUNDS);
    printf("%-44s %10.2f us %8.2f %s  %5.1f%% (best %5.1f%%) of %.1f\n", name, amount / v * 1e6,
           v * 1e-9, unit, 100 * r, 100 * ratio[ROUNDS - 1], p * 1e-9);
    fflush(stdout);
}

void tor_check_bench_flops(const char *name, double flops, int threads, TorBenchFn fn, void *ctx) {
    bench(name, "GFLOP/s", flops, tor_check_peak_flops, threads, fn, ctx);
}

void tor_check_bench_bytes(const char *name, double bytes, TorBenchFn fn, void *ctx) {
    bench(name, "GB/s", bytes, tor_check_read_bytes, 1, fn, ctx);
}

static void on_crash(int number) {
    // Nothing here is async-signal-safe in theory; the program is over either way.
    printf("FAILED %s [%s] %s: signal %d (%s)\n", check.test, check.level->name, check.name, number,
           strsignal(number));
    printf("%lld passed, %lld failed\n", (long long)check.passed, (long long)check.failures + 1);
    fflush(stdout);
    _exit(1);
}

static void run_level(const TorCheckTest *tests, size_t count) {
    char names[256];
    uint32_t removed = ~check.level->keeps;
    tor_cpu_mask(removed);
    printf("level %s: %s\n", check.level->name,
           tor_cpu_feature_names(tor_cpu_features(), names, sizeof names));
    for (size_t i = 0; i < count; i++) {
        char seed_text[256];
        if (check.filter && !strstr(tests[i].name, check.filter)) continue;
        check.test = tests[i].name;
        check.messages = 0, check.worst = 0;
        snprintf(seed_text, sizeof seed_text, "%s/%s", tests[i].name, check.level->name);
        seed_for(seed_text);
        int64_t passed = check.passed, failures = check.failures;
        check.name[0] = 0;
        tests[i].run();
        count_loose_failure();
        if (check.messages > MAX_MESSAGES)
            printf("... and %lld messages more\n", (long long)check.messages - MAX_MESSAGES);
        if (!check.bench)
            printf("  %-32s %6lld passed, %lld failed, largest error %.2f of the tolerance\n",
                   tests[i].name, (long long)(check.passed - passed),
                   (long long)(check.failures - failures), check.worst);
        fflush(stdout);
    }
    tor_cpu_mask(0);
}

int tor_check_main(int argc, char **argv, const TorCheckTest *tests, size_t n_tests,
                   const TorCheckTest *benches, size_t n_benches) {
    check.seed = 1;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0)
            check.bench = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            check.verbose = true;
        else if (strcmp(argv[i], "--seed") == 0 && more)
            check.seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--filter") == 0 && more)
            check.filter = argv[++i];
        else if (strcmp(argv[i], "--level") == 0 && more)
            check.only_level = argv[++i];
        else {
            fprintf(stderr,
                    "usage: %s [--bench] [--seed N] [--filter TEXT] [--level NAME] [--verbose]\n",
                    argv[0]);
            return 2;
        }
    }
    signal(SIGSEGV, on_crash), signal(SIGBUS, on_crash), signal(SIGILL, on_crash),
        signal(SIGFPE, on_crash), signal(SIGABRT, on_crash);

    uint32_t machine = tor_cpu_features();
    const Level *highest = &levels[0];
    for (size_t i = 0; i < TOR_COUNT_OF(levels); i++) {
        bool covered = (levels[i].needs & machine) == levels[i].needs;
        if (covered) highest = &levels[i];
        if (check.only_level && strcmp(check.only_level, levels[i].name) != 0) continue;
        if (!covered) {
            printf("level %s: not covered, this machine lacks it\n", levels[i].name);
            continue;
        }
        check.level = &levels[i];
        if (!check.bench)
            run_level(tests, n_tests);
        else if (check.only_level)
            run_level(benches, n_benches);
    }
    if (check.bench) {
        if (!check.only_level) {
            check.level = highest;
            run_level(benches, n_benches);
        }
        return 0;
    }
    printf("seed %llu: %lld passed, %lld failed\n", (unsigned long long)check.seed,
           (long long)check.passed, (long long)check.failures);
    return check.failures || !check.passed;
}
