/* The counting, caching allocator over a backend's raw memory: the one place that hands out device
 * memory. It gives freed memory out again at once. In stream order that is safe while work on it is
 * still queued, and it spares the page faults of fresh memory. A request is cut from the reserve,
 * if there is one with room; else it gets a block of its own, which is kept for the next request of
 * its size. All bookkeeping is on the host: the memory may be a GPU's. Not thread-safe. */
#ifndef SHOAL_KERNELS_MEMORY_H
#define SHOAL_KERNELS_MEMORY_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where blocks come from. */
struct memory_source {
    /* 64-byte aligned memory, or NULL if there is no more. */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *block);
    /* Waits until no queued work can touch freed blocks. Called before a block goes back to the
     * source while the device is at work. */
    void (*wait_idle)(void *ctx);
    /* Called when alloc() gave nothing, and before a lender is asked, for which it makes the device
     * current: 0 if the device works, else its fault. NULL: it always works. */
    int (*check)(void *ctx, struct error *err);
};

struct memory;

/* A kind of this header alone: an op's own scratch. It is neither counted nor limited. */
enum { MEMORY_SCRATCH = MEMORY_KINDS };

struct memory *memory_open(const struct memory_source *source, void *ctx);
/* Gives the cached blocks back to the source. A block that is still in use leaks. */
void memory_close(struct memory *memory);

/* As device_reserve and device_reserve_from. */
void memory_reserve_from(struct memory *memory, const struct memory_lender *lender);
int memory_reserve(struct memory *memory, size_t bytes, struct error *err);

/* As device_alloc and device_free. When the source has no more, memory_alloc() gives the cached
 * blocks back to it and asks once again. kind: enum memory_kind or MEMORY_SCRATCH. */
int memory_alloc(struct memory *memory, int kind, size_t bytes, const char *what, void **ret_memory,
                 struct error *err);
void memory_free(struct memory *memory, void *block); /* NULL-safe */

const struct memory_use *memory_use(const struct memory *memory);
void memory_reset_peak(struct memory *memory);
void memory_set_limit(struct memory *memory, int64_t bytes); /* as device_memory_set_limit */
/* As device_memory_whole_block and device_memory_on_release. */
void memory_whole_block(const struct memory *memory, const void **block, size_t *bytes);
void memory_on_release(struct memory *memory,
                       void (*on_release)(void *ctx, void *block, size_t bytes), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
