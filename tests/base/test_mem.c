/* What keeps memory small: arenas that hold little, and texts that change in their place. */
#include "tests/support.h"

#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_HEAP false /* it is the sanitizer's, of which the C library knows nothing */
#else
#define OWN_HEAP true
#endif

static size_t used_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

/* Whatever is asked for is zeroed, aligned, and apart from all else. */
static void an_arena_gives_what_is_asked_for(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 0, 15, 1000, 17, 1024, 100000, 3, 16 << 10, 5000, 16};
    auto_arena struct arena *arena = arena_open();
    unsigned char *given[array_length(sizes)];
    for (size_t i = 0; i < array_length(sizes); i++) {
        given[i] = arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)given[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(given[i][k], 0);
        memset(given[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < array_length(sizes); i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(given[i][k], i + 1);
}

/* Many are open at once, as each plan under way has some. */
static void an_arena_that_holds_little_takes_little(void **state)
{
    (void)state;
    enum { ARENAS = 100, SMALL_BYTES = 2 << 10, LARGE_BYTES = 40 << 10, PIECE_BYTES = 100 };
    struct arena *arenas[ARENAS];
    size_t before = used_bytes();
    for (int i = 0; i < ARENAS; i++)
        arena_alloc(arenas[i] = arena_open(), PIECE_BYTES);
    size_t small = used_bytes() - before;
    for (int i = 0; i < ARENAS; i++)
        for (int k = 0; k < (LARGE_BYTES / 2) / PIECE_BYTES; k++)
            arena_alloc(arenas[i], PIECE_BYTES);
    size_t large = used_bytes() - before;
    for (int i = 0; i < ARENAS; i++)
        arena_close(arenas[i]);
    if (!OWN_HEAP)
        return;
    assert_in_range(small, ARENAS * PIECE_BYTES, ARENAS * SMALL_BYTES);
    assert_in_range(large, ARENAS * LARGE_BYTES / 2, ARENAS * LARGE_BYTES);
}

static void a_text_changes_in_its_place(void **state)
{
    (void)state;
    enum { TEXTS = 50 };
    char *kept[TEXTS] = {NULL}, *was[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        auto_free char *made = xasprintf("{\"step\":%0200d}", i);
        mem_keep_text(&kept[i], made);
        was[i] = kept[i];
    }
    for (int i = 0; i < TEXTS; i++) {
        auto_free char *made = xasprintf("{\"step\":%0200d}", 1000 + i);
        mem_keep_text(&kept[i], made);
        assert_string_equal(kept[i], made);
        if (OWN_HEAP)
            assert_ptr_equal(kept[i], was[i]);
    }
    for (int i = 0; i < TEXTS; i++) {
        auto_free char *longer = xasprintf("%0*d", 10 * i, i);
        mem_keep_text(&kept[i], longer);
        assert_string_equal(kept[i], longer);
        free(kept[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_gives_what_is_asked_for),
        cmocka_unit_test(an_arena_that_holds_little_takes_little),
        cmocka_unit_test(a_text_changes_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
