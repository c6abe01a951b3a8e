#include "tests/support.h"

#include "agent/report/console.h"

#include <math.h>
#include <string.h>

static void epoch_and_test_lines_are_the_tutorials(void **state)
{
    (void)state;
    const struct trainer_score score = {
        .epoch = 2, .loss_sum = 2534.5, .correct = 9111, .samples = 10000};
    auto_str struct str text;
    str_init(&text, 1024);
    console_epoch_line(&score, &text);
    assert_string_equal(str_text(&text), "Train Epoch: 2 \tLoss: 0.253450\n");
    auto_str struct str test;
    str_init(&test, 1024);
    console_test_line(&score, &test);
    assert_non_null(strstr(str_text(&test), "Accuracy: 9111/10000 (91.11%)\n"));
}

static void memory_is_told_in_accelerates_words(void **state)
{
    (void)state;
    const int64_t mib = 1024 * 1024;
    const struct trainer_score score = {.memory_begin_bytes = 12 * mib,
                                        .memory_end_bytes = 15 * mib + 17,
                                        .memory_peak_bytes = 37 * mib + mib / 2};
    auto_str struct str text;
    str_init(&text, 1024);
    console_epoch_memory_lines(&score, &text);
    assert_string_equal(str_text(&text), "Memory before entering the train : 12\n"
                                         "Memory consumed at the end of the train (end-begin): 3\n"
                                         "Peak Memory consumed during the train (max-begin): 25\n"
                                         "Total Peak Memory consumed during the train (max): 37\n");
}

static void a_loss_that_is_no_number_is_nan(void **state)
{
    (void)state;
    const struct trainer_score score = {.epoch = 1, .loss_sum = -(double)NAN, .samples = 10};
    auto_str struct str text;
    str_init(&text, 1024);
    console_epoch_line(&score, &text);
    assert_string_equal(str_text(&text), "Train Epoch: 1 \tLoss: nan\n");
}

/* `steps` steps of 64 samples, 10 ms apart, from 1 s on. */
static struct throughput run_of(int steps)
{
    struct throughput t = {0};
    for (int i = 0; i < steps; i++)
        throughput_add(&t, 64, 1000000 + i * 10000);
    return t;
}

static void throughput_counts_from_the_first_warm_step(void **state)
{
    (void)state;
    const struct throughput t = run_of(CONSOLE_WARM_UP_STEPS + 5);
    assert_int_equal(t.steps, 5);
    assert_true(throughput_per_s(&t) == 6400);
    auto_str struct str text;
    str_init(&text, 1024);
    console_throughput_line(&t, 4, &text);
    assert_string_equal(str_text(&text), "Throughput: 6400.0 samples/s (4 ranks, 5 steps)\n");
}

static void time_skipped_is_no_training(void **state)
{
    (void)state;
    struct throughput t = run_of(CONSOLE_WARM_UP_STEPS);
    throughput_skip(&t, 7000000); /* an evaluation of 7 s, then a step of 10 ms */
    throughput_add(&t, 64, 1000000 + CONSOLE_WARM_UP_STEPS * 10000 + 7000000);
    assert_true(throughput_per_s(&t) == 6400);
}

static void a_short_run_has_no_throughput(void **state)
{
    (void)state;
    const struct throughput t = run_of(CONSOLE_WARM_UP_STEPS);
    auto_str struct str text;
    str_init(&text, 1024);
    console_throughput_line(&t, 1, &text);
    assert_string_equal(str_text(&text),
                        "Throughput: not known, the first 10 steps do not count\n");
}

static void the_greatest_share_of_the_time_comes_first(void **state)
{
    (void)state;
    struct time_account a = time_account_open(0);
    auto_str struct str text;
    str_init(&text, 1024);
    console_time_line(&a, &text);
    assert_string_equal(str_text(&text), "Time: 0.0 s\n");
    time_account_add(&a, TIME_INITIALIZATION, 1000000);
    time_account_step(&a, 0.5, false, 9999000);
    time_account_add(&a, TIME_OTHER, 10000000);
    str_clear(&text);
    console_time_line(&a, &text);
    assert_string_equal(str_text(&text),
                        "Time: 10.0 s: step 85.0 %, initialization 10.0 %, dataLoading 5.0 %\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_share_of_the_time_comes_first),
        cmocka_unit_test(epoch_and_test_lines_are_the_tutorials),
        cmocka_unit_test(memory_is_told_in_accelerates_words),
        cmocka_unit_test(a_loss_that_is_no_number_is_nan),
        cmocka_unit_test(throughput_counts_from_the_first_warm_step),
        cmocka_unit_test(time_skipped_is_no_training),
        cmocka_unit_test(a_short_run_has_no_throughput),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
