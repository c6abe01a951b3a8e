#include "kernels/memory.h"

#include "base/mem.h"
#include "kernels/memory_pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes are rounded up to a class: multiples of 64 bytes up to 512, then eight steps to each
 * doubling, so at most an eighth of a block is wasted. */
enum { STEPS = 8, STEP_MIN_BYTES = 64, FIRST_LOG2 = 9, CLASSES = (62 - FIRST_LOG2) * STEPS + 17 };
enum { BUCKETS = 1024 }; /* of the table that finds a block by its address */

struct block {
    struct block *next; /* in its bucket, or in its class's free list */
    void *memory;
    const struct memory_pool_block *pooled; /* of the reserve; NULL: it is the source's own */
    size_t bytes;                           /* asked for */
    size_t capacity;                        /* that there is */
    int class;
    int kind;
    bool is_beyond; /* counted in beyond_bytes */
};

struct memory {
    struct memory_source source;
    void *ctx;
    struct memory_use use;
    int64_t limit_bytes; /* 0: none */
    void (*on_release)(void *ctx, void *block, size_t bytes);
    void *on_release_ctx;
    struct memory_pool *reserve; /* or NULL */
    struct memory_lender lender; /* of the reserve; NULLs: none */
    struct block *used[BUCKETS];
    struct block *cached[CLASSES]; /* the source's own; last freed first: it is the warmest */
};

const char *memory_kind_name(enum memory_kind kind)
{
    static const char *const names[MEMORY_KINDS] = {"shard",     "unit",       "gradient",
                                                    "optimizer", "activation", "input"};
    assert(kind < MEMORY_KINDS);
    return names[kind];
}

/* The class of a request, and how many bytes its blocks have. */
static int size_class(size_t bytes, size_t *ret_block_bytes)
{
    int log2 = FIRST_LOG2;
    while (bytes >> (log2 + 1))
        log2++;
    size_t step = (size_t)1 << (log2 - 3);
    size_t steps = bytes ? (bytes + step - 1) / step : 1;
    *ret_block_bytes = steps * step;
    return (log2 - FIRST_LOG2) * STEPS + (int)steps;
}

static struct block **bucket_of(struct memory *memory, const void *address)
{
    uintptr_t key = (uintptr_t)address / STEP_MIN_BYTES;
    return &memory->used[(key ^ key >> 10 ^ key >> 20) % BUCKETS];
}

struct memory *memory_open(const struct memory_source *source, void *ctx)
{
    struct memory *memory = xcalloc(1, sizeof *memory);
    memory->source = *source;
    memory->ctx = ctx;
    return memory;
}

/* Whether the device works, which is the thread's current one then. */
static bool works(const struct memory *memory)
{
    struct error ignored;
    return !memory->source.check || memory->source.check(memory->ctx, &ignored) == 0;
}

static void tell_release(struct memory *memory, void *block, size_t bytes)
{
    if (memory->on_release)
        memory->on_release(memory->on_release_ctx, block, bytes);
}

static void release(struct memory *memory, void *block, size_t bytes)
{
    tell_release(memory, block, bytes);
    memory->source.free(memory->ctx, block);
}

static void release_cached(struct memory *memory)
{
    for (int i = 0; i < CLASSES; i++) {
        while (memory->cached[i]) {
            struct block *block = memory->cached[i];
            memory->cached[i] = block->next;
            memory->use.beyond_bytes -= block->is_beyond ? (int64_t)block->capacity : 0;
            release(memory, block->memory, block->capacity);
            free(block);
        }
    }
}

void memory_close(struct memory *memory)
{
    if (!memory)
        return;
    release_cached(memory);
    if (memory->reserve) {
        const struct memory_pool_use use = memory_pool_use(memory->reserve);
        tell_release(memory, use.memory, use.bytes);
        if (!memory->use.reserve_is_lent)
            memory->source.free(memory->ctx, use.memory);
        else if (works(memory)) /* of a GPU in a fault nothing can be given back */
            memory->lender.free(use.memory);
        memory_pool_close(memory->reserve);
    }
    free(memory);
}

void memory_reserve_from(struct memory *memory, const struct memory_lender *lender)
{
    assert(!memory->reserve);
    memory->lender = lender ? *lender : (struct memory_lender){0};
}

/* NULL: there is no lender, or it has nothing. */
static void *borrow(struct memory *memory, size_t bytes)
{
    void *all = NULL;
    if (!memory->lender.alloc || !works(memory) || memory->lender.alloc(&all, bytes) != 0)
        return NULL;
    memory->use.reserve_is_lent = true;
    return all;
}

int memory_reserve(struct memory *memory, size_t bytes, struct error *err)
{
    assert(!memory->reserve);
    void *all = borrow(memory, bytes);
    if (!all)
        all = memory->source.alloc(memory->ctx, bytes);
    if (!all && memory->source.check && memory->source.check(memory->ctx, err) < 0)
        return error_wrap(err, "memory for the run");
    if (!all)
        return error_set(err, ERR_MEMORY,
                         "no device memory for the run: %zu bytes asked for in one piece", bytes);
    memory->reserve = memory_pool_open(all, bytes);
    memory->use.fresh_blocks++;
    memory->use.reserved_bytes = (int64_t)bytes;
    return 0;
}

/* From the reserve; NULL: there is none, or it has no room. */
static struct block *cut_block(struct memory *memory, size_t bytes)
{
    const struct memory_pool_block *pooled =
        memory->reserve ? memory_pool_alloc(memory->reserve, bytes) : NULL;
    if (!pooled)
        return NULL;
    struct block *block = xcalloc(1, sizeof *block);
    block->memory = pooled->memory;
    block->pooled = pooled;
    return block;
}

/* A block of the class from the cache or the source; NULL if there is no more. */
static struct block *take_block(struct memory *memory, int class, size_t block_bytes)
{
    struct block *block = memory->cached[class];
    if (block) {
        memory->cached[class] = block->next;
        return block;
    }
    void *fresh = memory->source.alloc(memory->ctx, block_bytes);
    if (!fresh) {
        /* Queued ops may still use cached blocks, which is fine as long as they stay ours. Before
         * they go back to the source those ops must have ended. */
        memory->source.wait_idle(memory->ctx);
        release_cached(memory);
        fresh = memory->source.alloc(memory->ctx, block_bytes);
    }
    if (!fresh)
        return NULL;
    memory->use.fresh_blocks++;
    block = xcalloc(1, sizeof *block);
    block->is_beyond = memory->reserve != NULL;
    memory->use.beyond_bytes += block->is_beyond ? (int64_t)block_bytes : 0;
    block->memory = fresh;
    block->capacity = block_bytes;
    block->class = class;
    return block;
}

static void count_bytes(struct memory_use *use, int kind, int64_t bytes)
{
    if (kind == MEMORY_SCRATCH)
        return;
    use->current_bytes[kind] += bytes;
    use->current_total_bytes += bytes;
    if (use->peak_bytes[kind] < use->current_bytes[kind])
        use->peak_bytes[kind] = use->current_bytes[kind];
    if (use->peak_total_bytes < use->current_total_bytes)
        use->peak_total_bytes = use->current_total_bytes;
}

static bool fits(const struct memory *memory, size_t bytes)
{
    int64_t limit = memory->limit_bytes ? memory->limit_bytes : INT64_MAX / 4;
    return bytes <= (size_t)limit && memory->use.current_total_bytes <= limit - (int64_t)bytes;
}

/* Says why there is none. */
static int refuse(const struct memory *memory, int kind, size_t bytes, const char *what,
                  struct error *err)
{
    char reserved[128] = "";
    const char *name =
        kind == MEMORY_SCRATCH ? "scratch" : memory_kind_name((enum memory_kind)kind);
    if (memory->source.check && memory->source.check(memory->ctx, err) < 0)
        return error_wrap(err, "memory for %s", what);
    if (memory->reserve) {
        const struct memory_pool_use use = memory_pool_use(memory->reserve);
        snprintf(reserved, sizeof reserved,
                 "; of %zu reserved %zu are free, %zu of them in one piece", use.bytes,
                 use.free_bytes, use.largest_hole);
    }
    return error_set(err, ERR_MEMORY,
                     "no device memory for %s (%s): %zu bytes asked for, %" PRId64 " in use%s",
                     what, name, bytes, memory->use.current_total_bytes, reserved);
}

int memory_alloc(struct memory *memory, int kind, size_t bytes, const char *what, void **ret_memory,
                 struct error *err)
{
    assert(kind >= 0 && kind <= MEMORY_SCRATCH && what);
    struct block *block = NULL;
    if (kind == MEMORY_SCRATCH || fits(memory, bytes)) {
        size_t block_bytes;
        int class = size_class(bytes, &block_bytes);
        block = cut_block(memory, bytes);
        if (!block)
            block = take_block(memory, class, block_bytes);
    }
    if (!block)
        return refuse(memory, kind, bytes, what, err);
    block->bytes = bytes;
    block->kind = kind;
    struct block **bucket = bucket_of(memory, block->memory);
    block->next = *bucket;
    *bucket = block;
    count_bytes(&memory->use, kind, (int64_t)bytes);
    *ret_memory = block->memory;
    return 0;
}

void memory_free(struct memory *memory, void *address)
{
    if (!address)
        return;
    struct block **link = bucket_of(memory, address);
    while (*link && (*link)->memory != address)
        link = &(*link)->next;
    struct block *block = *link;
    assert(block && "not a block of this device, or freed twice");
    *link = block->next;
    count_bytes(&memory->use, block->kind, -(int64_t)block->bytes);
    if (block->pooled) {
        memory_pool_free(memory->reserve, block->pooled);
        free(block);
        return;
    }
    /* Freed memory is handed out again at once, although a queued op may still read it: the next
     * user is queued behind that op on the same stream. */
    block->next = memory->cached[block->class];
    memory->cached[block->class] = block;
}

const struct memory_use *memory_use(const struct memory *memory)
{
    return &memory->use;
}

void memory_reset_peak(struct memory *memory)
{
    struct memory_use *use = &memory->use;
    memcpy(use->peak_bytes, use->current_bytes, sizeof use->peak_bytes);
    use->peak_total_bytes = use->current_total_bytes;
}

void memory_set_limit(struct memory *memory, int64_t bytes)
{
    memory->limit_bytes = bytes;
}

void memory_whole_block(const struct memory *memory, const void **block, size_t *bytes)
{
    if (!memory->reserve)
        return;
    const struct memory_pool_use use = memory_pool_use(memory->reserve);
    const char *begin = use.memory, *at = *block;
    if (at < begin || at >= begin + use.bytes)
        return;
    *block = begin;
    *bytes = use.bytes;
}

void memory_on_release(struct memory *memory,
                       void (*on_release)(void *ctx, void *block, size_t bytes), void *ctx)
{
    memory->on_release = on_release;
    memory->on_release_ctx = ctx;
}
