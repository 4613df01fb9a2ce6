// Address space first, pages when touched: a plan's arena grows with its shapes without moving.
#include "base/alloc.h"

#include "base/log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESERVATION ((size_t)64 << 30)

// Where address space is limited or counted as memory, a generous reservation would starve the rest
// of the process.
static bool address_space_is_scarce(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return true;
    char mode = '0';
    int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, &mode, 1) != 1) mode = '0';
        close(file);
    }
    return mode == '2';
}

static void *reserve(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

ToroidStatus tor_region_fit(TorRegion *region, size_t bytes, bool *moved) {
    *moved = false;
    if (bytes <= region->reserved) {
        bool was_large = region->used * 2 >= region->touched;
        region->used = bytes;
        region->touched = TOR_MAX(region->touched, bytes);
        if (was_large && bytes * 2 < region->touched) region->shrunk = tor_now();
        return TOROID_OK;
    }
    if (bytes > PTRDIFF_MAX - TOR_HUGE_PAGE) return tor_no_memory();
    // The contents are lost in any case; their room may be what the new reservation needs.
    *moved = true;
    tor_region_destroy(region);
    size_t need = (bytes + TOR_HUGE_PAGE - 1) / TOR_HUGE_PAGE * TOR_HUGE_PAGE;
    size_t want = address_space_is_scarce() ? need : TOR_MAX(need, RESERVATION);
    void *base = reserve(want);
    while (base == NULL && want > need) {
        want = TOR_MAX(want / 2, need);
        base = reserve(want);
    }
    if (base == NULL) return tor_no_memory();
    // Advice only: it may be refused where the kernel has no huge pages.
    (void)madvise(base, want, MADV_HUGEPAGE);
    region->base = base;
    region->reserved = want;
    region->used = region->touched = bytes;
    return TOROID_OK;
}

void tor_region_settle(TorRegion *region) {
    if (region->used * 2 >= region->touched || tor_now() - region->shrunk < TOR_IDLE_SECONDS)
        return;
    size_t keep = (region->used + TOR_HUGE_PAGE - 1) / TOR_HUGE_PAGE * TOR_HUGE_PAGE;
    if (keep < region->touched)
        (void)madvise((uint8_t *)region->base + keep, region->touched - keep, MADV_DONTNEED);
    region->touched = region->used;
}

void tor_region_trim(TorRegion *region) {
    if (region->base != NULL) (void)madvise(region->base, region->reserved, MADV_DONTNEED);
    region->touched = region->used;
}

void tor_region_destroy(TorRegion *region) {
    if (region->base != NULL) munmap(region->base, region->reserved);
    *region = (TorRegion){0};
}
