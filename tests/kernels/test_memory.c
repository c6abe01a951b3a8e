/* The counting, caching allocator over a source that counts what it is asked for and
 * can run out. */
#include "base/mem.h"
#include "kernels/memory.h"
#include "kernels/random.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

struct source {
    size_t free_bytes; /* left to give */
    size_t given;      /* blocks out */
    int idle_waits;
    bool is_broken;
};

/* Each block carries its size in front, to give it back. */
static void *source_alloc(void *ctx, size_t bytes)
{
    struct source *source = ctx;
    if (bytes > source->free_bytes)
        return NULL;
    source->free_bytes -= bytes;
    source->given++;
    size_t *block = aligned_alloc(64, 64 + bytes);
    block[0] = bytes;
    return (char *)block + 64;
}

static void source_free(void *ctx, void *memory)
{
    struct source *source = ctx;
    size_t *block = (size_t *)((char *)memory - 64);
    source->free_bytes += block[0];
    source->given--;
    free(block);
}

static void source_wait_idle(void *ctx)
{
    ((struct source *)ctx)->idle_waits++;
}

static int source_check(void *ctx, struct error *err)
{
    return ((struct source *)ctx)->is_broken ? error_set(err, ERR_PEER, "fell off the bus") : 0;
}

static const struct memory_source functions = {source_alloc, source_free, source_wait_idle,
                                               source_check};

static void *alloc(struct memory *memory, enum memory_kind kind, size_t bytes)
{
    void *block = NULL;
    struct error err;
    assert_ok(memory_alloc(memory, kind, bytes, "x", &block, &err), &err);
    return block;
}

static void test_counts_and_peaks(void **state)
{
    (void)state;
    struct source source = {.free_bytes = 1 << 20};
    struct memory *memory = memory_open(&functions, &source);
    const struct memory_use *use = memory_use(memory);
    void *a = alloc(memory, MEMORY_UNIT, 1000);
    void *b = alloc(memory, MEMORY_GRADIENT, 500);
    memory_free(memory, a);
    void *c = alloc(memory, MEMORY_GRADIENT, 300);
    assert_int_equal(use->current_bytes[MEMORY_UNIT], 0);
    assert_int_equal(use->current_bytes[MEMORY_GRADIENT], 800);
    assert_int_equal(use->current_total_bytes, 800);
    assert_int_equal(use->peak_bytes[MEMORY_UNIT], 1000);
    assert_int_equal(use->peak_bytes[MEMORY_GRADIENT], 800);
    assert_int_equal(use->peak_bytes[MEMORY_SHARD], 0);
    assert_int_equal(use->peak_total_bytes, 1500);
    memory_reset_peak(memory);
    assert_int_equal(use->peak_bytes[MEMORY_UNIT], 0);
    assert_int_equal(use->peak_total_bytes, 800);
    memory_free(memory, b);
    memory_free(memory, c);
    memory_free(memory, NULL);
    assert_int_equal(use->current_total_bytes, 0);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

/* A freed block serves the next request of its size class, the last freed first. */
static void test_reuse(void **state)
{
    (void)state;
    static const struct {
        size_t freed, wanted;
        bool same;
    } rows[] = {
        {0, 64, true},          {1, 64, true},
        {64, 65, false},        {500, 512, true},
        {512, 513, false},      {1024, 1025, false},
        {1025, 1152, true},     {4000, 4096, true},
        {100000, 70000, false}, {1 << 19, 1 << 19, true},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct source source = {.free_bytes = 1 << 22};
        struct memory *memory = memory_open(&functions, &source);
        void *other = alloc(memory, MEMORY_UNIT, rows[i].freed);
        void *freed = alloc(memory, MEMORY_UNIT, rows[i].freed);
        assert_true((uintptr_t)freed % 64 == 0);
        memory_free(memory, other);
        memory_free(memory, freed);
        void *again = alloc(memory, MEMORY_INPUT, rows[i].wanted);
        assert_int_equal(again == freed, rows[i].same);
        memory_free(memory, again);
        memory_close(memory);
        assert_int_equal(source.given, 0);
    }
}

/* At most an eighth of a large block is wasted, and never is a block too small. */
static void test_size_classes(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < (size_t)1 << 40; bytes += 1 + bytes / 7) {
        struct source source = {.free_bytes = bytes - 1};
        struct memory *memory = memory_open(&functions, &source);
        struct error err;
        void *block;
        assert_fails(memory_alloc(memory, MEMORY_UNIT, bytes, "x", &block, &err), &err, ERR_MEMORY,
                     "x");
        memory_close(memory);
        if (bytes >= 1 << 20)
            continue;
        source.free_bytes = bytes < 512 ? (bytes + 63) / 64 * 64 : bytes + bytes / 8;
        memory = memory_open(&functions, &source);
        memory_free(memory, alloc(memory, MEMORY_UNIT, bytes));
        memory_close(memory);
    }
}

/* When the source has no more, the cached blocks go back to it before the request is refused. */
static void test_exhausted(void **state)
{
    (void)state;
    struct source source = {.free_bytes = 8192};
    struct memory *memory = memory_open(&functions, &source);
    void *block, *small = alloc(memory, MEMORY_SHARD, 1024);
    memory_free(memory, alloc(memory, MEMORY_UNIT, 4096));
    void *large = alloc(memory, MEMORY_UNIT, 7168);
    assert_int_equal(source.idle_waits, 1); /* queued work may still have used the cached block */
    struct error err;
    assert_fails(memory_alloc(memory, MEMORY_GRADIENT, 2000, "fc1 gradient", &block, &err), &err,
                 ERR_MEMORY, "fc1 gradient (gradient): 2000 bytes asked for, 8192 in use");
    assert_fails(memory_alloc(memory, MEMORY_UNIT, SIZE_MAX, "all", &block, &err), &err, ERR_MEMORY,
                 "all");
    source.is_broken = true; /* then it is that, not the memory */
    assert_fails(memory_alloc(memory, MEMORY_GRADIENT, 2000, "fc1 gradient", &block, &err), &err,
                 ERR_PEER, "memory for fc1 gradient: fell off the bus");
    memory_free(memory, large);
    memory_free(memory, small);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

/* The limit is on what is in use, not on what is cached; what is over it already stays. */
static void test_limit(void **state)
{
    (void)state;
    struct source source = {.free_bytes = 1 << 20};
    struct memory *memory = memory_open(&functions, &source);
    struct error err;
    void *block, *first = alloc(memory, MEMORY_UNIT, 600);
    memory_set_limit(memory, 1000);
    memory_free(memory, alloc(memory, MEMORY_UNIT, 400));
    assert_fails(memory_alloc(memory, MEMORY_UNIT, 401, "y", &block, &err), &err, ERR_MEMORY, "y");
    memory_set_limit(memory, 500);
    assert_fails(memory_alloc(memory, MEMORY_UNIT, 1, "y", &block, &err), &err, ERR_MEMORY, "y");
    memory_set_limit(memory, 0);
    memory_free(memory, alloc(memory, MEMORY_UNIT, 10000));
    memory_free(memory, first);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

/* Many blocks alive at once, freed in another order. */
static void test_many_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 5000 };
    static void *blocks[BLOCKS];
    struct source source = {.free_bytes = 1 << 26};
    struct memory *memory = memory_open(&functions, &source);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = alloc(memory, MEMORY_ACTIVATION, i);
        assert_int_equal(source.given, BLOCKS); /* the second round is all reuse */
        for (size_t i = 0; i < BLOCKS; i++)
            memory_free(memory, blocks[i * 3001 % BLOCKS]); /* coprime: each once */
    }
    assert_int_equal(memory_use(memory)->current_total_bytes, 0);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

/* Pieces of the reserve: the smallest hole is taken, holes side by side become one. What has no
 * room is asked for apart, counted, and found again. */
static void test_reserve(void **state)
{
    (void)state;
    struct source source = {.free_bytes = 1 << 16};
    struct memory *memory = memory_open(&functions, &source);
    const struct memory_use *use = memory_use(memory);
    struct error err;
    void *before = alloc(memory, MEMORY_INPUT, 100), *block;
    assert_fails(memory_reserve(memory, 1 << 16, &err), &err, ERR_MEMORY, "65536 bytes asked for");
    assert_ok(memory_reserve(memory, 8192, &err), &err);
    assert_int_equal(use->reserved_bytes, 8192);
    assert_int_equal(source.given, 2);

    char *a = alloc(memory, MEMORY_UNIT, 1000), *b = alloc(memory, MEMORY_UNIT, 2000);
    char *c = alloc(memory, MEMORY_UNIT, 1), *d = alloc(memory, MEMORY_UNIT, 1024);
    char *e = alloc(memory, MEMORY_UNIT, 0);
    const void *wide = c, *apart = before;
    size_t wide_bytes = 1, apart_bytes = 100;
    memory_whole_block(memory, &wide, &wide_bytes);
    memory_whole_block(memory, &apart, &apart_bytes);
    assert_true(wide == a && wide_bytes == 8192 && apart == before && apart_bytes == 100);
    assert_true(b == a + 1024 && c == b + 2048 && d == c + 256 && e == d + 1024);
    memory_free(memory, b);
    memory_free(memory, d);
    assert_ptr_equal(alloc(memory, MEMORY_UNIT, 900), d);
    memory_free(memory, d);
    memory_free(memory, c);
    assert_ptr_equal(alloc(memory, MEMORY_SHARD, 3000), b); /* one hole of all three */
    memory_free(memory, b);
    memory_free(memory, a);
    assert_ptr_equal(alloc(memory, MEMORY_SHARD, 3500), e + 256); /* it fits best */
    assert_ptr_equal(alloc(memory, MEMORY_SHARD, 1), a);
    assert_ptr_equal(alloc(memory, MEMORY_SHARD, 2), a + 256);
    memory_free(memory, a);
    assert_int_equal(use->current_total_bytes, 100 + 3500 + 2);
    assert_true(source.given == 2 && use->beyond_bytes == 0 && use->fresh_blocks == 2);

    void *beyond = alloc(memory, MEMORY_UNIT, 5000);
    assert_true(source.given == 3 && use->beyond_bytes == 5120);
    memory_free(memory, beyond);
    assert_ptr_equal(alloc(memory, MEMORY_UNIT, 5000), beyond);
    assert_int_equal(use->fresh_blocks, 3);
    assert_fails(memory_alloc(memory, MEMORY_UNIT, 1 << 16, "logits", &block, &err), &err,
                 ERR_MEMORY, "; of 8192 reserved 4096 are free, 3840 of them in one piece");
    memory_free(memory, beyond);
    assert_fails(memory_alloc(memory, MEMORY_UNIT, 1 << 16, "logits", &block, &err), &err,
                 ERR_MEMORY, "logits"); /* the cache was given back for it */
    assert_true(source.given == 2 && use->beyond_bytes == 0);
    memory_free(memory, e + 256);
    memory_free(memory, e);
    memory_free(memory, a + 256);
    memory_free(memory, before);
    assert_int_equal(use->current_total_bytes, 0);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

static int lent, lends;

static int lend(void **ret_memory, size_t bytes)
{
    if (!lends)
        return 1;
    lent++;
    *ret_memory = aligned_alloc(64, bytes);
    return 0;
}

static int take_back(void *memory)
{
    lent--;
    free(memory);
    return 0;
}

static void note_release(void *ctx, void *block, size_t bytes)
{
    (void)block;
    assert_int_equal(lent, lends); /* it is still there */
    *(size_t *)ctx = bytes;
}

/* The reserve alone is a lender's, who gets it back; where he has nothing, it is the source's. */
static void test_lender(void **state)
{
    (void)state;
    for (lends = 0; lends < 2; lends++) {
        struct source source = {.free_bytes = 1 << 16};
        struct memory *memory = memory_open(&functions, &source);
        struct error err;
        size_t released = 0;
        memory_on_release(memory, note_release, &released);
        memory_reserve_from(memory, &(struct memory_lender){lend, take_back});
        assert_ok(memory_reserve(memory, 8192, &err), &err);
        assert_int_equal(memory_use(memory)->reserve_is_lent, lends);
        assert_int_equal(lent, lends);
        assert_int_equal(source.given, !lends);
        void *within = alloc(memory, MEMORY_UNIT, 8192), *beyond = alloc(memory, MEMORY_UNIT, 64);
        assert_int_equal(source.given, !lends + 1);
        memory_free(memory, within);
        memory_free(memory, beyond);
        memory_close(memory);
        assert_int_equal(released, 8192);
        assert_true(source.given == 0 && lent == 0);
    }
}

/* Whatever is cut, in whatever order it is given back: pieces lie within the reserve, apart from
 * each other, and in the end it is whole again. */
static void test_reserve_at_random(void **state)
{
    (void)state;
    enum { PIECES = 40, TURNS = 4000, BYTES = 1 << 17 };
    struct error err;
    struct source source = {.free_bytes = BYTES}; /* all of it: what has no room fails */
    struct memory *memory = memory_open(&functions, &source);
    assert_ok(memory_reserve(memory, BYTES, &err), &err);
    unsigned char *pieces[PIECES] = {0};
    size_t sizes[PIECES] = {0};
    int refused = 0;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        size_t i = (size_t)(random_uniform(1, turn) * PIECES);
        if (pieces[i]) { /* nobody else wrote into it */
            assert_true(pieces[i][0] == i && pieces[i][sizes[i] - 1] == i);
            memory_free(memory, pieces[i]);
            pieces[i] = NULL;
            continue;
        }
        void *piece = NULL;
        sizes[i] = 1 + (size_t)(random_uniform(2, turn) * 12000);
        if (memory_alloc(memory, MEMORY_UNIT, sizes[i], "x", &piece, &err) < 0) {
            refused++;
            continue;
        }
        assert_int_equal((uintptr_t)piece % 64, 0);
        pieces[i] = piece;
        memset(piece, (int)i, sizes[i]);
    }
    assert_in_range(refused, 1, TURNS / 4);
    for (size_t i = 0; i < PIECES; i++)
        memory_free(memory, pieces[i]);
    memory_free(memory, alloc(memory, MEMORY_UNIT, BYTES));
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

/* An op's scratch has its place there, too, but is neither counted nor limited. */
static void test_scratch(void **state)
{
    (void)state;
    struct source source = {.free_bytes = 8192};
    struct memory *memory = memory_open(&functions, &source);
    struct error err;
    void *scratch, *block;
    assert_ok(memory_reserve(memory, 4096, &err), &err);
    memory_set_limit(memory, 1000);
    assert_ok(memory_alloc(memory, MEMORY_SCRATCH, 4096, "y", &scratch, &err), &err);
    assert_true(memory_use(memory)->current_total_bytes == 0 && source.given == 1);
    assert_fails(memory_alloc(memory, MEMORY_SCRATCH, 8192, "an op", &block, &err), &err,
                 ERR_MEMORY,
                 "no device memory for an op (scratch): 8192 bytes asked for, 0 in use");
    memory_free(memory, scratch);
    memory_close(memory);
    assert_int_equal(source.given, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_peaks),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_size_classes),
        cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_lender),
        cmocka_unit_test(test_reserve_at_random),
        cmocka_unit_test(test_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
