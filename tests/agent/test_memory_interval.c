/* How often memory checkpoints are taken: their cost stays within its part of the steps' time. */
#include "agent/trainer/memory_interval.h"
#include "base/mem.h"
#include "tests/support.h"

static void rows_of_one_rank(void **state)
{
    (void)state;
    static const struct {
        struct memory_cost cost;
        int64_t steps;
    } rows[] = {
        /* 10 ms of saving are paid by 1 s of steps */
        {{.step_us = 100000, .save_us = 10000}, 10},
        {{.step_us = 100001, .save_us = 10000}, 10},
        {{.step_us = 99999, .save_us = 10000}, 11},
        {{.step_us = 10000000, .save_us = 10000}, 1}, /* never less */
        {{.step_us = 1000000, .save_us = 10000}, 1},
        /* what was spent before counts, and what was trained before pays */
        {{.steps_us = 1000000, .spent_us = 10000, .step_us = 100000, .save_us = 10000}, 10},
        {{.steps_us = 1500000, .spent_us = 10000, .step_us = 100000, .save_us = 10000}, 5},
        {{.steps_us = 9000000, .spent_us = 10000, .step_us = 100000, .save_us = 10000}, 1},
        {{.steps_us = 0, .spent_us = 40000, .step_us = 100000, .save_us = 10000}, 50},
        /* what no clock should say */
        {{.step_us = 0, .save_us = 1}, 100},
        {{.step_us = -5, .save_us = 1}, 100},
        {{.step_us = 100, .save_us = -7}, 1},
        {{.step_us = 1, .save_us = INT64_MAX, .spent_us = INT64_MAX}, MEMORY_INTERVAL_MOST},
        {{0}, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (memory_interval(&rows[i].cost, 1) != rows[i].steps)
            fail_msg("row %zu: %lld steps", i, (long long)memory_interval(&rows[i].cost, 1));
}

static void the_slowest_save_and_the_fastest_step_count(void **state)
{
    (void)state;
    const struct memory_cost ranks[] = {
        {.step_us = 200000, .save_us = 10000},
        {.step_us = 100000, .save_us = 5000},
        {.step_us = 300000, .save_us = 20000},
    };
    assert_int_equal(memory_interval(ranks, 3), 20);
    assert_int_equal(memory_interval(ranks, 2), 10);
}

/* A run whose steps and saves take times that nobody knows before: over thousands of steps the cost
 * is at most 1 %, and not much less where they are steady. */
static void a_run_keeps_to_its_part(void **state)
{
    (void)state;
    static const struct {
        int64_t step_us, save_us;
        int step_noise, save_noise,
            hiccup;   /* percent; every so many saves takes ten times as long */
        double least; /* of the cost, in percent */
    } rows[] = {
        {20000, 500, 0, 0, 0, 0.98},  {20000, 50000, 0, 0, 0, 0.9}, {1000000, 100, 0, 0, 0, 0.0001},
        {20000, 5000, 50, 0, 0, 0.9}, {20000, 5000, 0, 90, 0, 0.5}, {20000, 5000, 50, 90, 9, 0.3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        uint32_t random = 12345;
        int64_t due = 2, steps_us = 0, late_us = 0, late = 0, saves = 0;
        struct memory_cost cost = {.save_us = 3 * rows[i].save_us};
        for (int64_t step = 1; step <= 50000; step++) {
            random = random * 1664525 + 1013904223;
            int64_t noise = (int64_t)(random >> 16) % 201 - 100; /* -100 .. 100 */
            int64_t took = rows[i].step_us * (10000 + noise * rows[i].step_noise) / 10000;
            steps_us += took;
            late_us += took;
            late++;
            if (step < due)
                continue;
            cost.steps_us = steps_us;
            cost.step_us = late_us / late;
            late_us = late = 0;
            if (step > 2) {
                bool is_hiccup = rows[i].hiccup > 0 && saves % rows[i].hiccup == 0;
                cost.save_us = rows[i].save_us * (10000 + noise * rows[i].save_noise) / 10000 *
                               (is_hiccup ? 10 : 1);
                cost.spent_us += cost.save_us;
                saves++;
            }
            due = step + memory_interval(&cost, 1);
        }
        double percent = 100.0 * (double)cost.spent_us / (double)steps_us;
        /* the last save may be larger than was foreseen: it is one of many */
        if (percent > 1.02 || percent < rows[i].least)
            fail_msg("row %zu: %.4f %% in %lld saves", i, percent, (long long)saves);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_one_rank),
        cmocka_unit_test(the_slowest_save_and_the_fastest_step_count),
        cmocka_unit_test(a_run_keeps_to_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
