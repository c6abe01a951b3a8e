#include "kernels/memory_pool.h"

#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

/* All of the reserve, in the order of addresses; never two holes side by side. */
struct part {
    struct memory_pool_block piece; /* first: a piece leads to its part */
    bool is_hole;
    struct part *before, *after;
    struct part *next_hole, *previous_hole;
};

struct memory_pool {
    struct part *first;
    struct part *holes; /* in no order: they are few */
    struct memory_pool_use use;
};

static void add_hole(struct memory_pool *r, struct part *part)
{
    part->is_hole = true;
    part->previous_hole = NULL;
    part->next_hole = r->holes;
    if (r->holes)
        r->holes->previous_hole = part;
    r->holes = part;
}

static void remove_hole(struct memory_pool *r, struct part *part)
{
    part->is_hole = false;
    if (part->previous_hole)
        part->previous_hole->next_hole = part->next_hole;
    else
        r->holes = part->next_hole;
    if (part->next_hole)
        part->next_hole->previous_hole = part->previous_hole;
}

struct memory_pool *memory_pool_open(void *memory, size_t bytes)
{
    struct memory_pool *r = xcalloc(1, sizeof *r);
    r->use = (struct memory_pool_use){.memory = memory, .bytes = bytes, .free_bytes = bytes};
    r->first = xcalloc(1, sizeof *r->first);
    r->first->piece = (struct memory_pool_block){memory, bytes};
    add_hole(r, r->first);
    return r;
}

void memory_pool_close(struct memory_pool *r)
{
    if (!r)
        return;
    for (struct part *part = r->first, *after; part; part = after) {
        after = part->after;
        free(part);
    }
    free(r);
}

/* The smallest that has room, of several the first in memory: the same requests in the same order
 * then find the same places. */
static struct part *find_hole(const struct memory_pool *r, size_t bytes)
{
    struct part *best = NULL;
    for (struct part *hole = r->holes; hole; hole = hole->next_hole) {
        if (hole->piece.bytes < bytes)
            continue;
        if (!best || hole->piece.bytes < best->piece.bytes ||
            (hole->piece.bytes == best->piece.bytes && hole->piece.memory < best->piece.memory))
            best = hole;
    }
    return best;
}

/* Leaves `bytes` in the part; the rest becomes a hole behind it. */
static void split(struct memory_pool *r, struct part *part, size_t bytes)
{
    struct part *rest = xcalloc(1, sizeof *rest);
    rest->piece =
        (struct memory_pool_block){(char *)part->piece.memory + bytes, part->piece.bytes - bytes};
    rest->before = part;
    rest->after = part->after;
    if (rest->after)
        rest->after->before = rest;
    part->after = rest;
    part->piece.bytes = bytes;
    add_hole(r, rest);
}

const struct memory_pool_block *memory_pool_alloc(struct memory_pool *r, size_t bytes)
{
    if (bytes > r->use.free_bytes)
        return NULL;
    size_t whole = (bytes + MEMORY_POOL_ALIGN - 1) / MEMORY_POOL_ALIGN * MEMORY_POOL_ALIGN;
    whole = whole ? whole : MEMORY_POOL_ALIGN;
    struct part *part = find_hole(r, whole);
    if (!part)
        return NULL;
    remove_hole(r, part);
    if (part->piece.bytes > whole)
        split(r, part, whole);
    r->use.free_bytes -= whole;
    return &part->piece;
}

/* Both are holes, `after` is not listed. */
static void swallow(struct part *part, struct part *after)
{
    part->piece.bytes += after->piece.bytes;
    part->after = after->after;
    if (part->after)
        part->after->before = part;
    free(after);
}

void memory_pool_free(struct memory_pool *r, const struct memory_pool_block *piece)
{
    struct part *part = (struct part *)piece;
    assert(!part->is_hole);
    r->use.free_bytes += piece->bytes;
    if (part->after && part->after->is_hole) {
        remove_hole(r, part->after);
        swallow(part, part->after);
    }
    if (part->before && part->before->is_hole)
        swallow(part->before, part);
    else
        add_hole(r, part);
}

struct memory_pool_use memory_pool_use(const struct memory_pool *r)
{
    struct memory_pool_use use = r->use;
    for (const struct part *hole = r->holes; hole; hole = hole->next_hole)
        if (use.largest_hole < hole->piece.bytes)
            use.largest_hole = hole->piece.bytes;
    return use;
}
