#include "tests/operator/histories/region.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CLASSES = 40,
    ALIGN = 16,
    REGION_BYTES = 64 << 20,
    LARGE_FROM = REGION_BYTES / 2, /* where large blocks lie */
    LARGE_BYTES = 1 << 10,         /* of this size or more: most are free between two steps */
    MAX_LARGE = 512
};

/* In front of what is handed out. */
struct block {
    size_t size; /* usable */
    union {
        struct block *next; /* in its list, while it is free and small */
        size_t number;      /* of a large one */
    };
};
_Static_assert(sizeof(struct block) == ALIGN, "what follows it is aligned");

/* At the region's beginning, so that a copy of the region has it, too. */
struct region {
    size_t used; /* bytes, this header included, without large blocks */
    struct block *free[CLASSES];
    size_t large_used, large_count;
    struct {
        uint32_t offset; /* in the region */
        uint8_t class;
        bool in_use;
    } large[]; /* [large_count], of MAX_LARGE for which there is room */
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
    size_t header = sizeof *region + MAX_LARGE * sizeof region->large[0];
    *region = (struct region){.used = (header + ALIGN - 1) / ALIGN * ALIGN};
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

static struct block *large_block(size_t number)
{
    return (struct block *)((unsigned char *)region + region->large[number].offset);
}

static void *alloc_large(int class, size_t size)
{
    size_t number = 0;
    while (number < region->large_count &&
           (region->large[number].in_use || region->large[number].class != class))
        number++;
    if (number == region->large_count) {
        assert(number < MAX_LARGE);
        region->large_count++;
        region->large[number].offset = LARGE_FROM + (uint32_t)region->large_used;
        region->large[number].class = (uint8_t) class;
        region->large_used += sizeof(struct block) + size;
        assert(region->large_used <= REGION_BYTES - LARGE_FROM);
    }
    region->large[number].in_use = true;
    struct block *block = large_block(number);
    *block = (struct block){.size = size, .number = number};
    return block + 1;
}

void *region_alloc(size_t bytes)
{
    size_t size;
    int class = class_of(bytes ? bytes : 1, &size);
    if (size >= LARGE_BYTES)
        return alloc_large(class, size);
    struct block *block = region->free[class];
    if (block) {
        region->free[class] = block->next;
    } else {
        block = (struct block *)((unsigned char *)region + region->used);
        region->used += sizeof *block + size;
        assert(region->used <= LARGE_FROM);
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
    if (size >= LARGE_BYTES) {
        region->large[block->number].in_use = false;
        return;
    }
    block->next = region->free[class];
    region->free[class] = block;
}

static size_t bytes_in_use(void)
{
    size_t bytes = region->used;
    for (size_t i = 0; i < region->large_count; i++)
        if (region->large[i].in_use)
            bytes += sizeof(struct block) + large_block(i)->size;
    return bytes;
}

/* In pieces that the C library copies by vectors. Larger ones it copies by `rep movsb`, with which
 * some of AMD's processors take ten times as long. */
static void copy(void *to, const void *from, size_t bytes)
{
    enum { PIECE = 1 << 10 };
    for (size_t at = 0; at < bytes; at += PIECE)
        memcpy((unsigned char *)to + at, (const unsigned char *)from + at,
               bytes - at < PIECE ? bytes - at : PIECE);
}

void region_keep(struct region_state *state)
{
    assert(!entered);
    size_t used = bytes_in_use();
    if (state->size < used) {
        state->size = used + used / 4;
        free(state->bytes);
        state->bytes = malloc(state->size);
        assert(state->bytes);
    }
    state->used = used;
    copy(state->bytes, region, region->used);
    unsigned char *to = state->bytes + region->used;
    for (size_t i = 0; i < region->large_count; i++) {
        if (!region->large[i].in_use)
            continue;
        size_t bytes = sizeof(struct block) + large_block(i)->size;
        copy(to, large_block(i), bytes);
        to += bytes;
    }
}

void region_bring_back(const struct region_state *state)
{
    assert(!entered);
    const struct region *kept = (const struct region *)(const void *)state->bytes;
    copy(region, kept, kept->used);
    const unsigned char *from = state->bytes + region->used;
    for (size_t i = 0; i < region->large_count; i++) {
        if (!region->large[i].in_use)
            continue;
        size_t bytes = sizeof(struct block) + ((const struct block *)(const void *)from)->size;
        copy(large_block(i), from, bytes);
        from += bytes;
    }
}

void region_drop(struct region_state *state)
{
    free(state->bytes);
    *state = (struct region_state){0};
}
