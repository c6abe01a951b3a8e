/* Which ranks are slow, by what they tell of their steps. */
#include "agent/health/straggler.h"
#include "tests/support.h"

#include "base/mem.h"

enum { RANKS = 4 };

/* Windows of one pace each: milliseconds of a step's compute on each rank. */
struct pace_row {
    const char *label;
    int step_ms[RANKS];
    int windows;
    int slow; /* -1: none */
    double ratio;
};

static void test_slow_ranks(void **state)
{
    (void)state;
    static const struct pace_row rows[] = {
        {"all alike", {100, 101, 99, 100}, 8, -1, 0},
        {"one is slow", {100, 100, 150, 100}, 5, 2, 1.5},
        {"... but not for long enough", {100, 100, 150, 100}, 4, -1, 0},
        {"... or not by enough", {100, 100, 129, 100}, 8, -1, 0},
        {"a fast one makes the others none", {50, 100, 100, 100}, 8, -1, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct stragglers *s = stragglers_open(RANKS);
        struct rank_report reports[RANKS] = {0};
        const struct rank_report *heard[RANKS];
        int news = 0;
        for (int w = 0; w <= rows[i].windows; w++) {
            for (int r = 0; r < RANKS; r++) {
                heard[r] = &reports[r];
                reports[r].steps += w > 0 ? 50 : 0;
                reports[r].compute_us += w > 0 ? 50 * 1000 * rows[i].step_ms[r] : 0;
            }
            bool is_over = stragglers_tick(s, heard, w * STRAGGLER_WINDOW_MS);
            for (int r = 0; r < RANKS && is_over; r++)
                news += straggler_is_news(s, r);
        }
        for (int r = 0; r < RANKS; r++)
            if (straggler_is_slow(s, r) != (r == rows[i].slow))
                fail_msg("%s: rank %d", rows[i].label, r);
        assert_int_equal(news, rows[i].slow >= 0);
        if (rows[i].slow >= 0)
            assert_float_equal(straggler_ratio(s, rows[i].slow), rows[i].ratio, 1e-9);
        stragglers_close(s);
    }
}

static void test_a_window_needs_all_ranks_and_steps(void **state)
{
    (void)state;
    struct stragglers *s = stragglers_open(2);
    struct rank_report reports[2] = {{.pid = 1}, {.pid = 2}};
    const struct rank_report *both[] = {&reports[0], &reports[1]};
    const struct rank_report *one[] = {&reports[0], NULL};
    const int64_t later_ms = 2 * STRAGGLER_WINDOW_MS;
    assert_false(stragglers_tick(s, one, 0));
    assert_false(stragglers_tick(s, both, 0));
    reports[0].steps = reports[1].steps = STRAGGLER_WINDOW_STEPS - 1;
    assert_false(stragglers_tick(s, both, later_ms)); /* long enough, but too few steps */
    reports[0].steps = reports[1].steps = STRAGGLER_WINDOW_STEPS;
    assert_false(stragglers_tick(s, one, later_ms)); /* a window with a gap is none */
    assert_false(stragglers_tick(s, both, later_ms));
    reports[0].steps = reports[1].steps = 2 * STRAGGLER_WINDOW_STEPS;
    assert_false(stragglers_tick(s, both, later_ms + STRAGGLER_WINDOW_MS - 1));
    assert_true(stragglers_tick(s, both, later_ms + STRAGGLER_WINDOW_MS));
    reports[1].pid = 3; /* a new process */
    assert_false(stragglers_tick(s, both, later_ms + 2 * STRAGGLER_WINDOW_MS));
    stragglers_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_ranks),
        cmocka_unit_test(test_a_window_needs_all_ranks_and_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
