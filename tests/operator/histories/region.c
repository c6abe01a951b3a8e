#include "tests/operator/histories/region.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLASSES = 40, ALIGN = 16, REGION_BYTES = 64 << 20 };

/* In front of what is handed out. */
struct block {
    size_t size;        /* usable */
    struct block *next; /* in its list, while it is free */
};
_Static_assert(sizeof(struct block) == ALIGN, "what follows it is aligned");

/* At the region's beginning, so that a copy of the region has it, too. */
struct region {
    size_t used; /* bytes, this header included */
    struct block *free[CLASSES];
};

static struct region *region;
static bool entered;

void region_open(void)
{
    if (!region) {
        void *at = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert(at != MAP_FAILED);
        region = at;
    }
    *region = (struct region){.used = (sizeof *region + ALIGN - 1) / ALIGN * ALIGN};
}

void region_enter(void)
{
    entered = true;
}

void region_leave(void)
{
    entered = false;
}

bool region_is_entered(void)
{
    return entered;
}

bool region_has(const void *pointer)
{
    uintptr_t at = (uintptr_t)pointer, first = (uintptr_t)region;
    return region && at >= first && at < first + REGION_BYTES;
}

/* Sizes of 16, 24, 32, 48, 64, ...: half a power of two apart, at multiples of 16. */
static int class_of(size_t bytes, size_t *ret_size)
{
    size_t size = ALIGN;
    int class = 0;
    for (; size < bytes; class ++)
        size = class % 2 ? size / 3 * 4 : size + size / 2;
    *ret_size = (size + ALIGN - 1) / ALIGN * ALIGN;
    assert(class < CLASSES);
    return class;
}

void *region_alloc(size_t bytes)
{
    size_t size;
    int class = class_of(bytes ? bytes : 1, &size);
    struct block *block = region->free[class];
    if (block) {
        region->free[class] = block->next;
    } else {
        block = (struct block *)((unsigned char *)region + region->used);
        region->used += sizeof *block + size;
        assert(region->used <= REGION_BYTES);
    }
    block->size = size;
    return block + 1;
}

static struct block *block_of(const void *pointer)
{
    return (struct block *)(uintptr_t)pointer - 1;
}

size_t region_size(const void *pointer)
{
    return block_of(pointer)->size;
}

void region_free(void *pointer)
{
    struct block *block = block_of(pointer);
    size_t size;
    int class = class_of(block->size, &size);
    block->next = region->free[class];
    region->free[class] = block;
}

void region_keep(struct region_state *state)
{
    assert(!entered);
    if (state->size < region->used) {
        state->size = region->used + region->used / 4;
        free(state->bytes);
        state->bytes = malloc(state->size);
        assert(state->bytes);
    }
    state->used = region->used;
    memcpy(state->bytes, region, region->used);
}

void region_bring_back(const struct region_state *state)
{
    assert(!entered);
    memcpy(region, state->bytes, state->used);
}

void region_drop(struct region_state *state)
{
    free(state->bytes);
    *state = (struct region_state){0};
}
