/* How much memory is left: of the machine, and below a container's limit. */
#include "base/memory_left.h"
#include "tests/support.h"

static void the_machine_tells_what_is_available(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {
        {"MemTotal:       16 kB\nMemFree:  2 kB\nMemAvailable:    8 kB\nSwapFree: 1 kB\n", 8192},
        {"MemAvailable: 0 kB\n", 0},
        {"MemTotal: 16 kB\n", INT64_MAX},
        {"MemAvailable: many\n", INT64_MAX},
        {"", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (memory_left_of_machine(rows[i].text) != rows[i].bytes)
            fail_msg("row %zu: %lld", i, (long long)memory_left_of_machine(rows[i].text));
    assert_int_equal(memory_left_of_machine(NULL), INT64_MAX);
}

static void a_limit_leaves_what_is_not_used(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *used, *stat;
        int64_t bytes;
    } rows[] = {
        {"1000\n", "300\n", "anon 200\ninactive_file 100\nactive_file 7\n", 800},
        {"1000\n", "300\n", "inactive_file 5\ntotal_inactive_file 50\n", 750}, /* version 1 */
        {"1000\n", "300\n", NULL, 700},
        {"1000\n", "1200\n", "", 0},
        {"1000\n", "300\n", "inactive_file 400\n", 700}, /* cannot be */
        {"max\n", "300\n", "", INT64_MAX},
        {"9223372036854771712\n", "300\n", "", INT64_MAX}, /* version 1 without a limit */
        {"1000\n", NULL, NULL, INT64_MAX},
        {NULL, NULL, NULL, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (memory_left_of_group(rows[i].limit, rows[i].used, rows[i].stat) != rows[i].bytes)
            fail_msg("row %zu: %lld", i,
                     (long long)memory_left_of_group(rows[i].limit, rows[i].used, rows[i].stat));
}

static void this_process_has_some(void **state)
{
    (void)state;
    const char *by = NULL;
    assert_true(memory_left(&by) > 0);
    assert_non_null(by);
}

/* Whoever asks gets the same names, by which ranks see that they share it. */
static void bounds_have_names(void **state)
{
    (void)state;
    struct memory_bound bounds[MEMORY_BOUNDS], again[MEMORY_BOUNDS];
    memory_bounds(bounds);
    memory_bounds(again);
    assert_true(bounds[MEMORY_OF_MACHINE].id != 0);
    for (int i = 0; i < MEMORY_BOUNDS; i++)
        assert_true(bounds[i].id == again[i].id);
    const struct memory_bound *limit = &bounds[MEMORY_OF_CONTAINER];
    assert_int_equal(limit->id != 0, limit->left != INT64_MAX);
    assert_true(limit->id != bounds[MEMORY_OF_MACHINE].id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_tells_what_is_available),
        cmocka_unit_test(a_limit_leaves_what_is_not_used),
        cmocka_unit_test(this_process_has_some),
        cmocka_unit_test(bounds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
