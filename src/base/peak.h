/// What one core of this machine does at best, measured when asked.
#ifndef TOR_BASE_PEAK_H
#define TOR_BASE_PEAK_H

#include "base/status.h"

/// Seconds; the wall's (tor_now()) or a thread's own.
typedef double (*TorClock)(void);

/// float32 multiply-adds, two flops each, a second, in the widest vectors that are in use (see
/// tor_cpu_mask()). Takes a few ms.
double tor_peak_flops(TorClock clock);

/// Bytes a second read from `memory`: `bytes` of it, a multiple of 256, aligned to 32, all touched
/// before. Many times the largest cache gives the bandwidth of the memory.
double tor_peak_read(const uint8_t *memory, size_t bytes, TorClock clock);
/// As many bytes as that takes here.
size_t tor_peak_read_bytes(void);

#endif
