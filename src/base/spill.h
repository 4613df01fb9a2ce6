/// Memory whose content waits in a file until somebody reads it.
///
/// The pages of a range are written to a file without a name, which then takes their place at the
/// same addresses, privately. Every pointer into the range stays right and reads the same bytes; a
/// page that is read comes back from the file, and one that is written is the process's own again.
/// What is spilled takes no memory, and the file goes when the last mapping of it does.
#ifndef TOR_BASE_SPILL_H
#define TOR_BASE_SPILL_H

#include "base/status.h"

/// Ranges with less are left alone.
#define TOR_SPILL_LEAST ((size_t)256 << 10)

/// Spills the whole pages of [data, data + bytes) into the first of TOROID_CACHE_DIR, TMPDIR,
/// /var/tmp and /tmp that is on a disk and has room. Leaves alone what is not private memory of
/// this process: files, shared memory. Nobody may write the range meanwhile; reading is fine. A
/// range that was spilled before is written anew. Any thread.
/// @return false if the range stays in memory; a failure is told in one line, once
bool tor_spill(const void *data, size_t bytes);
/// Brings the pages that hold these addresses back, for what is read often.
void tor_spill_keep(const void *const *addresses, int count);
/// For the owner of [data, data + bytes), before it is freed: spilled ranges in it are plain memory
/// again, without their content.
void tor_spill_end(const void *data, size_t bytes);
/// Bytes of all ranges that are spilled now.
uint64_t tor_spill_bytes(void);

#endif
