/* Resident memory: that it is known, and that trimming lessens it and harms nothing. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/resident.h"

#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)

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
    resident_trim();
    int64_t after = resident_bytes();
    assert_true(after > 0 && after < before);
    assert_string_equal(text, "constants are still there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_touched_is_resident),
        cmocka_unit_test(trimming_lessens_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
