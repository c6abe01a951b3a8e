#include "tests/support.h"

#include "base/backoff.h"

/* The largest of many waits after `failures` failures, and the check that none is below 1. */
static int64_t most_of(int64_t first_ms, int64_t max_ms, unsigned failures)
{
    uint64_t state = 7;
    int64_t most = 0;
    for (int i = 0; i < 20000; i++) {
        int64_t wait_ms = backoff_ms(first_ms, max_ms, failures, &state);
        assert_true(wait_ms >= 1);
        if (wait_ms > most)
            most = wait_ms;
    }
    return most;
}

static void doubles_up_to_the_cap(void **state)
{
    (void)state;
    assert_int_equal(most_of(10, 1000, 1), 10);
    assert_int_equal(most_of(10, 1000, 2), 20);
    assert_int_equal(most_of(10, 1000, 3), 40);
    assert_int_equal(most_of(10, 60, 4), 60);
    assert_int_equal(most_of(10, 60, 4000000000u), 60);
    assert_int_equal(most_of(100, 30, 1), 30);
    assert_true(most_of(INT64_MAX / 2, INT64_MAX, 9) > INT64_MAX / 2);
}

static void is_spread_over_all_of_it(void **state)
{
    (void)state;
    uint64_t random = 1;
    int64_t sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += backoff_ms(1000, 1000, 1, &random);
    assert_in_range(sum / 10000, 480, 520);
}

static void same_seed_same_waits(void **state)
{
    (void)state;
    uint64_t a = 5, b = 5, c = 6;
    int differ = 0;
    for (int i = 0; i < 20; i++) {
        int64_t wait_ms = backoff_ms(1000, 1000, 1, &a);
        assert_int_equal(wait_ms, backoff_ms(1000, 1000, 1, &b));
        differ += wait_ms != backoff_ms(1000, 1000, 1, &c);
    }
    assert_true(differ > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_up_to_the_cap),
        cmocka_unit_test(is_spread_over_all_of_it),
        cmocka_unit_test(same_seed_same_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
