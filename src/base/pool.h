/// The process's one thread pool.
///
/// A parallel region is cut into shares, which the threads take as they come: one that gets no CPU
/// does not hold up the rest. Workers spin at most 50 us after a region and
/// then sleep. If the pool serves another caller, the caller runs its region alone: it never waits
/// for a stranger. After fork() the child starts with a fresh pool.
#ifndef TOR_BASE_POOL_H
#define TOR_BASE_POOL_H

#include "base/status.h"

/// Runs items [begin, end). `scratch` is this thread's own, of the size the region asked for,
/// aligned to TOR_CACHE_LINE.
typedef void (*TorRangeFn)(const void *args, int64_t begin, int64_t end, void *scratch);

/// One parallel region, bound. A NULL `run` is not the pool's to run.
typedef struct {
    TorRangeFn run;
    const void *args;
    int64_t items;
} TorRegionCall;

/// Regions that one operator takes at most, one after the other.
enum { TOR_REGION_CALLS = 3 };

/// A caller's hold on the pool for the length of one plan run.
typedef struct {
    int threads;       ///< what this run uses: 1 if the pool was busy
    void *pool;        ///< private
    uint8_t *scratch;  ///< threads * scratch_bytes
    size_t scratch_bytes;
} TorTeam;

/// Takes the pool for `threads` (>= 1, the caller included), or makes a team of one if it is taken
/// or cannot grow. `scratch` has room for threads * scratch_bytes; scratch_bytes is a multiple of
/// TOR_CACHE_LINE. Never fails, never blocks on another team.
void tor_team_begin(TorTeam *team, int threads, uint8_t *scratch, size_t scratch_bytes);
/// Items that a thread takes where so many are left.
static inline int64_t tor_team_share(int64_t left, int threads) {
    return TOR_MAX(left / (2 * threads), 1);
}

/// Runs `fn` over [0, items) in contiguous ranges and waits for all. Which thread runs which range
/// is not fixed; its scratch is its own.
void tor_team_run(TorTeam *team, TorRangeFn fn, const void *args, int64_t items);
/// Sends the workers to sleep at once (before foreign code that brings threads of its own).
void tor_team_rest(TorTeam *team);
void tor_team_end(TorTeam *team);

#endif
