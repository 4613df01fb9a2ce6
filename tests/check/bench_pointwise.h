/// What check_pointwise --bench times; none where the compiler's loops cannot be had.
#ifndef TOR_BENCH_POINTWISE_H
#define TOR_BENCH_POINTWISE_H

#include "harness.h"

extern const TorCheckTest pointwise_benches[];
extern const size_t pointwise_bench_count;

#endif
