/* Resident memory: that it is known, and that trimming lessens it and harms nothing. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/resident.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_HEAP false /* it is the sanitizer's, of which the C library knows nothing */
#else
#define OWN_HEAP true
#endif

static void what_is_touched_is_resident(void **state)
{
    (void)state;
    int64_t before = resident_bytes();
    assert_true(before > 0);
    auto_free char *block = xmalloc(BLOCK_BYTES);
    memset(block, 1, BLOCK_BYTES);
    assert_true(resident_bytes() >= before + (int64_t)BLOCK_BYTES / 2);
}

static void trimming_lessens_it(void **state)
{
    (void)state;
    static const char text[] = "constants are still there";
    int64_t before = resident_bytes();
    mem_trim();
    int64_t after = resident_bytes();
    assert_true(after > 0 && after < before);
    assert_string_equal(text, "constants are still there");
}

/* Between blocks that stay, as pages read among objects that are kept. */
static void what_is_freed_is_spare_until_it_is_trimmed(void **state)
{
    (void)state;
    enum { BLOCKS = 1024, SMALL_BYTES = 16 << 10 };
    void *freed[BLOCKS], *kept[BLOCKS];
    mem_trim();
    int64_t before = resident_spare_bytes();
    for (int i = 0; i < BLOCKS; i++) {
        freed[i] = memset(xmalloc(SMALL_BYTES), 1, SMALL_BYTES);
        kept[i] = memset(xmalloc(64), 1, 64);
    }
    int64_t in_use = resident_spare_bytes();
    for (int i = 0; i < BLOCKS; i++)
        free(freed[i]);
    int64_t spare = resident_spare_bytes();
    mem_trim();
    int64_t after = resident_spare_bytes();
    for (int i = 0; i < BLOCKS; i++)
        free(kept[i]);
    if (!OWN_HEAP)
        return;
    assert_true(before >= 0 && in_use < before + (1 << 20));
    assert_true(spare >= in_use + BLOCKS * SMALL_BYTES / 2);
    assert_true(after <= spare - BLOCKS * SMALL_BYTES / 2);
}

/* glibc's heap would keep the second one, as it has seen the first one freed. */
static void what_is_large_goes_back_at_once(void **state)
{
    (void)state;
    enum { TEXTS = 8, TEXT_BYTES = 2 << 20 };
    mem_return_large();
    mem_trim();
    int64_t before = resident_spare_bytes();
    for (int i = 0; i < TEXTS; i++) {
        char *volatile text = xmalloc(TEXT_BYTES);
        memset(text, 1, TEXT_BYTES);
        free(text);
    }
    int64_t after = resident_spare_bytes();
    if (OWN_HEAP)
        assert_true(after < before + TEXT_BYTES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_touched_is_resident),
        cmocka_unit_test(trimming_lessens_it),
        cmocka_unit_test(what_is_freed_is_spare_until_it_is_trimmed),
        cmocka_unit_test(what_is_large_goes_back_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
