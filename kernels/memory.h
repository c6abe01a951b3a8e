/* The counting, caching allocator that lies over a backend's raw memory. A freed block is kept and
 * given out again at once to the next request of its size: in stream order that is safe while work
 * on it is still queued, and it spares the page faults of fresh memory. It keeps its notes on the
 * host and never touches the memory itself, which may be a GPU's. Not thread-safe. */
#ifndef SHOAL_KERNELS_MEMORY_H
#define SHOAL_KERNELS_MEMORY_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where blocks come from. */
struct memory_source {
    /* 64-byte aligned memory, or NULL if there is no more. */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *block);
    /* Returns when no queued work can touch freed blocks any more: called before blocks go back to
     * the source while the device is at work. */
    void (*wait_idle)(void *ctx);
    /* When there was no more: whether the device works at all; else ERR_PEER, or what its fault
     * is. NULL: it always does. */
    int (*check)(void *ctx, struct error *err);
};

struct memory;

struct memory *memory_open(const struct memory_source *source, void *ctx);
/* Gives the cached blocks back to the source. Blocks still in use are their owner's leak. */
void memory_close(struct memory *memory);

/* As device_alloc and device_free. When the source has no more, the cached blocks are given back
 * to it and it is asked once again. */
int memory_alloc(struct memory *memory, enum memory_kind kind, size_t bytes, const char *what,
                 void **ret_memory, struct error *err);
void memory_free(struct memory *memory, void *block); /* NULL-safe */

const struct memory_use *memory_use(const struct memory *memory);
void memory_reset_peak(struct memory *memory);
void memory_set_limit(struct memory *memory, int64_t bytes); /* as device_memory_set_limit */
/* As device_memory_on_release. */
void memory_on_release(struct memory *memory, void (*leaves)(void *ctx, void *block, size_t bytes),
                       void *ctx);

#ifdef __cplusplus
}
#endif
#endif
