/* Goodput, case by case; tests/operator/reconcile/test_goodput_life.c has whole lives of jobs. */
#include "operator/job/goodput.h"

#include "tests/support.h"

#include <math.h>

#define CREATED_MS INT64_C(1767225600000)

static struct training told_at(int64_t process_s, int64_t steps_s, int64_t step)
{
    struct training t = training_open();
    t.process_ms = CREATED_MS + 1000 * process_s;
    t.spent_ms[TRAINING_SPENT_STEP] = 1000 * steps_s;
    t.resumed_step = 0;
    t.step = step;
    return t;
}

/* An operator of before has stored when the process began in whole seconds. */
static void a_time_in_whole_seconds_is_the_same_process(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    struct training first = told_at(10, 20, 5), second = told_at(10, 30, 9);
    second.process_ms += 250;
    goodput_told(&g, &none, &first, &start, CREATED_MS, CREATED_MS + 40000);
    goodput_told(&g, &first, &second, &start, CREATED_MS, CREATED_MS + 60000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 30000);
    second.process_ms += 500; /* both tell of milliseconds: another one */
    first.process_ms += 250;
    goodput_told(&g, &first, &second, &start, CREATED_MS, CREATED_MS + 100000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP] + g.ms[TRAINING_SPENT_LOST_WORK], 60000);
}

static void no_more_than_went_by_is_taken(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    struct training lies = told_at(-7000, 900000000, 5);
    lies.spent_ms[TRAINING_SPENT_DATA] = INT64_C(100000000000);
    goodput_told(&g, &none, &lies, &start, CREATED_MS, CREATED_MS + 60000);
    assert_in_range(goodput_sum_ms(&g), 0, 62000);
    struct training future = told_at(100000, 1, 5);
    goodput_told(&g, &lies, &future, &start, CREATED_MS, CREATED_MS + 120000);
    assert_in_range(goodput_sum_ms(&g), 0, 122000);
    goodput_rest(&g, GOODPUT_RECOVERY, CREATED_MS, CREATED_MS); /* a clock that went back */
    assert_in_range(goodput_sum_ms(&g), 0, 122000);
}

/* `shoal run` after Ctrl-C, 4 s after the last word that a pass has seen. */
static void a_job_that_is_stopped_adds_up(void **state)
{
    (void)state;
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    for (int words = 0; words < 3; words++) {
        struct goodput g = {.known = true, .now = GOODPUT_PENDING};
        struct training before = told_at(1, 5, 10), told = told_at(1, 8, 14);
        if (words > 0)
            goodput_told(&g, &none, &before, &start, CREATED_MS, CREATED_MS + 6000);
        else
            goodput_turn(&g, GOODPUT_INSIDE, GOODPUT_UNTOLD, CREATED_MS + 1000, CREATED_MS,
                         CREATED_MS + 1000);
        goodput_stop(&g, words > 0 ? &before : &none, words == 2 ? &told : &none, CREATED_MS,
                     CREATED_MS + 10000);
        assert_int_equal(goodput_sum_ms(&g), 10000);
        assert_int_equal(g.ms[TRAINING_SPENT_STEP], words == 2 ? 8000 : words == 1 ? 5000 : 0);
        assert_int_equal(g.ms[TRAINING_SPENT_OTHER], words == 2 ? 1000 : words == 1 ? 4000 : 0);
        assert_int_equal(g.ms[GOODPUT_UNTOLD], words == 0 ? 9000 : 0);
    }
}

/* Its process is gone, and no other has begun when it is stopped: the last word is no news. */
static void a_job_that_is_stopped_while_it_recovers_recovered(void **state)
{
    (void)state;
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    const struct training told = told_at(1, 5, 10);
    struct goodput g = {.known = true, .now = GOODPUT_PENDING};
    goodput_told(&g, &none, &told, &start, CREATED_MS, CREATED_MS + 6000);
    goodput_turn_open(&g, GOODPUT_RECOVERY);
    goodput_stop(&g, &told, &told, CREATED_MS, CREATED_MS + 10000);
    assert_int_equal(goodput_sum_ms(&g), 10000);
    assert_int_equal(g.ms[GOODPUT_RECOVERY], 4000);
}

static void steps_done_again_are_lost_work(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {.scheduled_ms = CREATED_MS + 4000};
    struct training first = told_at(10, 100, 200);
    goodput_told(&g, &none, &first, &start, CREATED_MS, CREATED_MS + 112000);
    assert_int_equal(g.ms[GOODPUT_PENDING], 4000);
    assert_int_equal(g.ms[GOODPUT_CONTAINER_START], 6000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 100000);
    struct training second = told_at(130, 100, 350); /* from 150 on: a quarter again */
    second.resumed_step = 150;
    goodput_told(&g, &first, &second, &start, CREATED_MS, CREATED_MS + 240000);
    assert_int_equal(g.ms[GOODPUT_RECOVERY], 20000);
    assert_int_equal(g.ms[TRAINING_SPENT_LOST_WORK], 25000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 175000);
    assert_true(fabs(goodput_ratio(&g) - 175.0 / 230.0) < 1e-9);
    /* one that knows which of its steps are done again says so itself */
    struct training third = told_at(250, 50, 400);
    third.resumed_step = 300;
    third.spent_ms[TRAINING_SPENT_LOST_WORK] = 50000;
    goodput_told(&g, &second, &third, &start, CREATED_MS, CREATED_MS + 360000);
    assert_int_equal(g.ms[TRAINING_SPENT_LOST_WORK], 75000);
    assert_int_equal(g.ms[TRAINING_SPENT_STEP], 225000);
    /* said again it is nothing new */
    const struct goodput before = g;
    goodput_told(&g, &third, &third, &start, CREATED_MS, CREATED_MS + 400000);
    assert_true(goodput_equal(&g, &before));
}

static void of_nothing_nothing_is_known(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    const struct training none = {.known = false};
    const struct goodput_start start = {0};
    struct training old_agent = told_at(0, 0, 7);
    old_agent.process_ms = 0;
    goodput_told(&g, &none, &old_agent, &start, CREATED_MS, CREATED_MS + 60000);
    goodput_rest(&g, GOODPUT_SUSPENDED, CREATED_MS, CREATED_MS + 90000);
    assert_false(g.known);
    assert_int_equal(goodput_sum_ms(&g), 0);
    assert_true(isnan(goodput_ratio(&g)));
}

static void what_goes_on_is_shown_before_it_is_over(void **state)
{
    (void)state;
    struct goodput g = {.known = false};
    assert_int_equal(goodput_open_ms(&g, CREATED_MS, CREATED_MS + 5000), 0);
    goodput_turn(&g, GOODPUT_PENDING, GOODPUT_UNTOLD, CREATED_MS, CREATED_MS, CREATED_MS + 100);
    assert_true(g.known);
    assert_int_equal(goodput_sum_ms(&g), 0);
    assert_int_equal(goodput_open_ms(&g, CREATED_MS, CREATED_MS + 5000), 5000);
    assert_int_equal(goodput_open_ms(&g, 0, CREATED_MS + 5000), 0);
    struct goodput shown = goodput_shown(&g, CREATED_MS, CREATED_MS + 5000);
    assert_int_equal(shown.ms[GOODPUT_PENDING], 5000);
    assert_true(isnan(goodput_ratio(&shown))); /* of no process nothing is known yet */
    goodput_turn(&g, GOODPUT_INSIDE, GOODPUT_UNTOLD, CREATED_MS + 5000, CREATED_MS,
                 CREATED_MS + 7000);
    assert_int_equal(goodput_sum_ms(&g), 5000);
    assert_int_equal(goodput_open_ms(&g, CREATED_MS, CREATED_MS + 9000), 0); /* its own to tell */
}

static void what_turns_ends_what_went_on(void **state)
{
    (void)state;
    struct goodput g = {.known = true, .now = GOODPUT_RECOVERY};
    goodput_turn(&g, GOODPUT_SUSPENDED, TRAINING_SPENT_OTHER, CREATED_MS + 3000, CREATED_MS,
                 CREATED_MS + 4000);
    assert_int_equal(g.ms[GOODPUT_RECOVERY], 3000);
    goodput_turn(&g, GOODPUT_SUSPENDED, TRAINING_SPENT_OTHER, CREATED_MS + 9000, CREATED_MS,
                 CREATED_MS + 9000); /* it is that already */
    assert_int_equal(goodput_sum_ms(&g), 3000);
    goodput_turn(&g, GOODPUT_PENDING, TRAINING_SPENT_OTHER, CREATED_MS + 99000, CREATED_MS,
                 CREATED_MS + 10000); /* of the future, by another clock */
    assert_int_equal(g.ms[GOODPUT_SUSPENDED], 7000);
    goodput_turn(&g, GOODPUT_INSIDE, TRAINING_SPENT_OTHER, CREATED_MS + 2000, CREATED_MS,
                 CREATED_MS + 12000); /* of before: what is accounted for stays */
    assert_int_equal(goodput_sum_ms(&g), 10000);
    goodput_turn(&g, GOODPUT_SUSPENDED, GOODPUT_UNTOLD, CREATED_MS + 15000, CREATED_MS,
                 CREATED_MS + 15000);
    assert_int_equal(g.ms[GOODPUT_UNTOLD], 5000);
    goodput_turn_open(&g, GOODPUT_RECOVERY);
    struct goodput shown = goodput_shown(&g, CREATED_MS, CREATED_MS + 20000);
    assert_int_equal(shown.ms[GOODPUT_RECOVERY], 3000 + 5000);
    struct goodput other = g;
    assert_true(goodput_equal(&g, &other));
    other.now = GOODPUT_UNTOLD;
    assert_false(goodput_equal(&g, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_on_is_shown_before_it_is_over),
        cmocka_unit_test(what_turns_ends_what_went_on),
        cmocka_unit_test(a_time_in_whole_seconds_is_the_same_process),
        cmocka_unit_test(no_more_than_went_by_is_taken),
        cmocka_unit_test(a_job_that_is_stopped_adds_up),
        cmocka_unit_test(a_job_that_is_stopped_while_it_recovers_recovered),
        cmocka_unit_test(steps_done_again_are_lost_work),
        cmocka_unit_test(of_nothing_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
