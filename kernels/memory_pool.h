/* One large range of memory that blocks are cut from: a best-fit allocator. A block comes from the
 * smallest hole with room for it, and joins the holes beside it when the caller gives it back. So
 * sizes may change from step to step without fragmenting the memory. All bookkeeping is on
 * the host: the memory may be a GPU's. Not thread-safe. */
#ifndef SHOAL_KERNELS_MEMORY_POOL_H
#define SHOAL_KERNELS_MEMORY_POOL_H

#include <stddef.h>

enum { MEMORY_POOL_ALIGN = 256 }; /* bytes; of blocks, as CUDA aligns its own */

struct memory_pool;
struct memory_pool_block {
    void *memory;
    size_t bytes; /* as asked for, rounded up to MEMORY_POOL_ALIGN */
};

/* memory[bytes] stays the caller's, who frees it after memory_pool_close(). */
struct memory_pool *memory_pool_open(void *memory, size_t bytes);
void memory_pool_close(struct memory_pool *pool); /* NULL-safe; all blocks are given back before */

/* NULL: no hole has room for it. */
const struct memory_pool_block *memory_pool_alloc(struct memory_pool *pool, size_t bytes);
void memory_pool_free(struct memory_pool *pool, const struct memory_pool_block *block);

struct memory_pool_use {
    void *memory;
    size_t bytes;                    /* in all */
    size_t free_bytes, largest_hole; /* of them, now */
};
struct memory_pool_use memory_pool_use(const struct memory_pool *pool);
#endif
