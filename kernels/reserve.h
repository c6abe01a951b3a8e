/* One large block of memory that smaller pieces are cut from: a best-fit allocator. A piece comes
 * from the smallest hole with room for it, and joins the holes beside it when the caller gives it
 * back. So sizes may change from step to step without fragmenting the block. All bookkeeping is on
 * the host: the memory may be a GPU's. Not thread-safe. */
#ifndef SHOAL_KERNELS_RESERVE_H
#define SHOAL_KERNELS_RESERVE_H

#include <stddef.h>

enum { RESERVE_ALIGN = 256 }; /* bytes; of pieces, as CUDA aligns its own blocks */

struct reserve;
struct piece {
    void *memory;
    size_t bytes; /* as asked for, rounded up to RESERVE_ALIGN */
};

/* memory[bytes] stays the caller's, who frees it after reserve_close(). */
struct reserve *reserve_open(void *memory, size_t bytes);
void reserve_close(struct reserve *reserve); /* NULL-safe; all pieces are given back before */

/* NULL: no hole has room for it. */
const struct piece *reserve_cut(struct reserve *reserve, size_t bytes);
void reserve_give_back(struct reserve *reserve, const struct piece *piece);

struct reserve_use {
    void *memory;
    size_t bytes;                    /* in all */
    size_t free_bytes, largest_hole; /* of them, now */
};
struct reserve_use reserve_use(const struct reserve *reserve);
#endif
