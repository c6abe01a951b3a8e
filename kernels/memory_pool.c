#include "kernels/memory_pool.h"

#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

/* All of the pool, in the order of addresses; never two holes side by side. */
struct block {
    struct memory_pool_block head; /* first: the caller gets a pointer to it */
    bool is_hole;
    struct block *before, *after;
    struct block *next_hole, *previous_hole;
};

struct memory_pool {
    struct block *first;
    struct block *holes; /* in no order: they are few */
    struct memory_pool_use use;
};

static void add_hole(struct memory_pool *pool, struct block *block)
{
    block->is_hole = true;
    block->previous_hole = NULL;
    block->next_hole = pool->holes;
    if (pool->holes)
        pool->holes->previous_hole = block;
    pool->holes = block;
}

static void remove_hole(struct memory_pool *pool, struct block *block)
{
    block->is_hole = false;
    if (block->previous_hole)
        block->previous_hole->next_hole = block->next_hole;
    else
        pool->holes = block->next_hole;
    if (block->next_hole)
        block->next_hole->previous_hole = block->previous_hole;
}

struct memory_pool *memory_pool_open(void *memory, size_t bytes)
{
    struct memory_pool *pool = xcalloc(1, sizeof *pool);
    pool->use = (struct memory_pool_use){.memory = memory, .bytes = bytes, .free_bytes = bytes};
    pool->first = xcalloc(1, sizeof *pool->first);
    pool->first->head = (struct memory_pool_block){memory, bytes};
    add_hole(pool, pool->first);
    return pool;
}

void memory_pool_close(struct memory_pool *pool)
{
    if (!pool)
        return;
    for (struct block *block = pool->first, *after; block; block = after) {
        after = block->after;
        free(block);
    }
    free(pool);
}

/* The smallest that has room, of several the first in memory: the same requests in the same order
 * then find the same places. */
static struct block *find_hole(const struct memory_pool *pool, size_t bytes)
{
    struct block *best = NULL;
    for (struct block *hole = pool->holes; hole; hole = hole->next_hole) {
        if (hole->head.bytes < bytes)
            continue;
        if (!best || hole->head.bytes < best->head.bytes ||
            (hole->head.bytes == best->head.bytes && hole->head.memory < best->head.memory))
            best = hole;
    }
    return best;
}

/* Leaves `bytes` in the block; the rest becomes a hole behind it. */
static void split(struct memory_pool *pool, struct block *block, size_t bytes)
{
    struct block *rest = xcalloc(1, sizeof *rest);
    rest->head =
        (struct memory_pool_block){(char *)block->head.memory + bytes, block->head.bytes - bytes};
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->head.bytes = bytes;
    add_hole(pool, rest);
}

const struct memory_pool_block *memory_pool_alloc(struct memory_pool *pool, size_t bytes)
{
    if (bytes > pool->use.free_bytes)
        return NULL;
    size_t whole = (bytes + MEMORY_POOL_ALIGN - 1) / MEMORY_POOL_ALIGN * MEMORY_POOL_ALIGN;
    whole = whole ? whole : MEMORY_POOL_ALIGN;
    struct block *block = find_hole(pool, whole);
    if (!block)
        return NULL;
    remove_hole(pool, block);
    if (block->head.bytes > whole)
        split(pool, block, whole);
    pool->use.free_bytes -= whole;
    return &block->head;
}

/* Both are holes, `after` is not listed. */
static void merge(struct block *block, struct block *after)
{
    block->head.bytes += after->head.bytes;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    free(after);
}

void memory_pool_free(struct memory_pool *pool, const struct memory_pool_block *head)
{
    struct block *block = (struct block *)head;
    assert(!block->is_hole);
    pool->use.free_bytes += head->bytes;
    if (block->after && block->after->is_hole) {
        remove_hole(pool, block->after);
        merge(block, block->after);
    }
    if (block->before && block->before->is_hole)
        merge(block->before, block);
    else
        add_hole(pool, block);
}

struct memory_pool_use memory_pool_use(const struct memory_pool *pool)
{
    struct memory_pool_use use = pool->use;
    for (const struct block *hole = pool->holes; hole; hole = hole->next_hole)
        if (use.largest_hole < hole->head.bytes)
            use.largest_hole = hole->head.bytes;
    return use;
}
