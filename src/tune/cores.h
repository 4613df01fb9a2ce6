/// Cores for processes that measure at the same time: none of them shares one with another.
#ifndef TOR_TUNE_CORES_H
#define TOR_TUNE_CORES_H

#include "base/status.h"

/// Physical cores that this thread may run on; hyperthreads of one count once.
int tor_cores_count(void);
/// Pins this thread, and those that it starts, to the cores of share `number` of `shares`.
/// @return TOROID_INVALID where there are fewer cores than shares
ToroidStatus tor_cores_pin(int number, int shares, int *cpus);

#endif
