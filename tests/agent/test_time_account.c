/* Each second of a process has one kind, and they add up to all that went by. */
#include "agent/telemetry/time_account.h"

#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

static int64_t sum_us(const struct time_account *a)
{
    int64_t sum = 0;
    for (int k = 0; k < TIME_KINDS; k++)
        sum += a->us[k];
    return sum;
}

static void the_kinds_add_up(void **state)
{
    (void)state;
    struct time_account a = time_account_open(1000);
    time_account_add(&a, TIME_INITIALIZATION, 5000);
    time_account_add(&a, TIME_PEER_WAIT, 9000);
    time_account_step(&a, 0.002, false, 19000);
    time_account_step(&a, 0, true, 29000);
    time_account_step(&a, (double)NAN, false, 39000);
    time_account_step(&a, 7, false, 49000); /* more than went by */
    time_account_add(&a, TIME_SAVE, 40000); /* a clock that goes back is no time */
    time_account_step(&a, 0.001, false, 40000);
    time_account_add(&a, TIME_OTHER, 51000);
    static const int64_t us[TIME_KINDS] = {
        [TIME_INITIALIZATION] = 4000, [TIME_PEER_WAIT] = 4000,  [TIME_DATA] = 12000,
        [TIME_STEP] = 18000,          [TIME_LOST_WORK] = 10000, [TIME_OTHER] = 2000};
    assert_memory_equal(a.us, us, sizeof us);
    assert_int_equal(sum_us(&a), 50000);
    assert_int_equal(a.until_us - a.begin_us, 50000);
}

/* Whatever happens in whatever order. */
static void they_add_up_in_any_history(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int run = 0; run < 1000; run++) {
        int64_t now_us = 500;
        struct time_account a = time_account_open(now_us);
        for (int i = 0; i < 100; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            now_us += (int64_t)(seed >> 44) - 1000;
            if (seed >> 33 & 1)
                time_account_add(&a, (enum time_kind)(seed >> 20 & 7), now_us);
            else
                time_account_step(&a, (double)(seed >> 40 & 0xffff) / 1e5 - 0.1, seed >> 34 & 1,
                                  now_us);
            assert_int_equal(sum_us(&a), a.until_us - a.begin_us);
        }
    }
}

static void kinds_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < TIME_KINDS; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(time_kind_name((enum time_kind)i),
                                    time_kind_name((enum time_kind)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kinds_add_up),
        cmocka_unit_test(they_add_up_in_any_history),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
