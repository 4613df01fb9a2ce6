/// The frame of every check program: each fast kernel against the plain one, under every
/// instruction set of the machine, with guards round every buffer; and timed in the same program
/// with --bench.
///
///     static void tiles(void) {
///         for (...) {
///             tor_check_case("m=%d n=%d", m, n);
///             float *a = tor_check_buffer(bytes, sizeof(float));
///             tor_check_fill(TOR_float32, a, count, TOR_FILL_UNIFORM);
///             ...
///             tor_check_compare(TOR_float32, got, want, count, rtol, atol);
///             tor_check_done();
///         }
///     }
///     int main(int argc, char **argv) {
///         static const TorCheckTest tests[] = {{"tiles", tiles}}, benches[] = {{"bert", bert}};
///         return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches,
///         TOR_COUNT_OF(benches));
///     }
///
/// Arguments: --bench (benches instead of tests), --seed N, --filter TEXT (tests whose name
/// contains it), --level NAME (that level only), --verbose (names every case). Not thread-safe:
/// only kernels run on several threads.
#ifndef TOR_TESTS_HARNESS_H
#define TOR_TESTS_HARNESS_H

#include "base/dtype.h"
#include "base/pool.h"

typedef struct {
    const char *name;
    void (*run)(void);
} TorCheckTest;

/// Runs every test under every level that the machine has, names those it lacks, and ends with a
/// line "N passed, N failed". Benches run under the highest level, or the one that --level names.
/// @return the exit status: 0 if nothing failed and something passed
int tor_check_main(int argc, char **argv, const TorCheckTest *tests, size_t n_tests,
                   const TorCheckTest *benches, size_t n_benches);

const char *tor_check_level(
    void);  ///< "generic", "avx2", "avx512": the one that tests now run under

/// Opens a case. Its name stands before every message, also after a crash.
void tor_check_case(const char *format, ...) TOR_PRINTF(1, 2);
/// Closes it: verifies all guards, frees all buffers, counts it as passed or failed.
void tor_check_done(void);
/// Marks the open case as failed, with a message (the first few are printed).
void tor_check_fail(const char *format, ...) TOR_PRINTF(1, 2);
#define TOR_CHECK(condition)                                                           \
    do {                                                                               \
        if (!(condition)) tor_check_fail("%s:%d: %s", __FILE__, __LINE__, #condition); \
    } while (0)

/// Deterministic from --seed, the test's name and the level.
uint64_t tor_check_random(void);
int64_t tor_check_range(int64_t least, int64_t most);  ///< both included
double tor_check_uniform(void);                        ///< [-1, 1)
bool tor_check_coin(void);

/// Memory of the open case, filled with TOR_CHECK_GUARD: guard bytes before and after, at a random
/// offset that is a multiple of `align`; every other one ends at a page that cannot be read.
void *tor_check_buffer(size_t bytes, size_t align);
#define TOR_CHECK_GUARD 0xA5
/// Runs a region of `items` on some threads, with scratch that is all NaN at first, since nothing
/// may be read of it before it is written, and a guard behind it.
void tor_check_run(TorRangeFn run, const void *args, int64_t items, size_t scratch_bytes,
                   int threads);
/// Verifies the guards of all buffers of the case; done() does it too.
void tor_check_guards(void);

typedef enum {
    TOR_FILL_UNIFORM,  ///< floats in [-1, 1); integers over their whole range; bool either
    TOR_FILL_EXACT,  ///< integers in [-4, 4], so that float sums of products are exact and compare
                     ///< bit for bit
    TOR_FILL_SPECIAL,  ///< uniform with NaN, infinities, signed zeros, subnormals and huge values
                       ///< in between
} TorFill;
void tor_check_fill(TorDtype dtype, void *data, int64_t count, TorFill fill);

/// Fails the case unless |got - want| <= atol + rtol * |want| for each element (NaN equals NaN,
/// integers and bool compare exactly), or if nearly all of `want` is zero. With rtol and atol 0 the
/// values must be equal (0.0 equals -0.0). Elements that are still guard bytes in both are equal
/// and do not count, so strided outputs can be compared gaps and all.
/// @return the largest |got - want| / (atol + rtol * |want|)
double tor_check_compare(TorDtype dtype, const void *got, const void *want, int64_t count,
                         double rtol, double atol);
/// Bit for bit.
void tor_check_same(const void *got, const void *want, size_t bytes);
/// Float value of element i, for tests that need it.
double tor_check_value(TorDtype dtype, const void *data, int64_t i);

// Timing. Every figure is a median over rounds, in each of which the peak is measured beside it.
// Calls are timed by their thread's own CPU time, so that a busy machine disturbs less; several
// threads by the wall clock.

double tor_check_seconds(void);  ///< monotonic clock
double tor_check_peak_flops(
    void);  ///< float32 FMA peak of one thread at the present level, FLOP/s (a few ms)
double tor_check_read_bytes(void);  ///< read bandwidth of one thread beyond the caches, bytes/s

typedef void (*TorBenchFn)(void *ctx);
/// Median seconds of one call (CPU time of this thread).
double tor_check_time(TorBenchFn fn, void *ctx);
/// Prints GFLOP/s and the ratio to the peak (to `threads` times it) of a call that does `flops`.
void tor_check_bench_flops(const char *name, double flops, int threads, TorBenchFn fn, void *ctx);
/// Prints GB/s and the ratio to the read bandwidth of one thread, of a call that moves `bytes`.
void tor_check_bench_bytes(const char *name, double bytes, TorBenchFn fn, void *ctx);

#endif
