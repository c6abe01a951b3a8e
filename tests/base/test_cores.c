/* How many threads are worth while. */
#include "base/cores.h"
#include "tests/support.h"

#include <sched.h>

static void quotas_are_whole_cores(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int cores;
    } rows[] = {
        {"max 100000\n", 0},
        {"200000 100000\n", 2},
        {"150000 100000", 1},
        {"50000 100000", 1},
        {"-1\n 100000\n", 0},
        {"400000\n 100000\n", 4},
        {"", 0},
        {"7", 0},
        {"100000 0", 0},
        {"9e18 1", 0},
        {"nan nan", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (cores_of_quota(rows[i].text) != rows[i].cores)
            fail_msg("\"%s\" is %d cores, not %d", rows[i].text, cores_of_quota(rows[i].text),
                     rows[i].cores);
}

static void affinity_counts(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_in_range(cores_available(), 1, CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cores_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_are_whole_cores),
        cmocka_unit_test(affinity_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
