#include "base/series.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(struct series *s, int64_t step, double loss)
{
    series_add(s, &(struct series_point){.time_s = (uint32_t)(1000 + step),
                                         .step = step,
                                         .loss = (float)loss,
                                         .rate = (float)(2 * step),
                                         .world_size = step == 3 ? 0 : 8});
}

static int64_t step_of(const struct series *s, int point)
{
    return (int64_t)s->points[point].high_step << 32 | s->points[point].low_step;
}

static char *text_of(struct json *value)
{
    char *text = json_print(value, JSON_COMPACT);
    json_free(value);
    return text;
}

static void points_are_told_as_they_came(void **state)
{
    (void)state;
    struct series s = {.count = 0};
    assert_null(series_json(&s, "u"));
    assert_null(series_losses(&s, 8));
    add(&s, 1, 2.5);
    add(&s, 1, 9.0); /* the same step */
    add(&s, 3, (double)NAN);
    add(&s, 2, 1.25); /* done again */
    auto_free char *all = text_of(series_json(&s, "tokensPerSecond"));
    assert_string_equal(all, "{\"unit\":\"tokensPerSecond\",\"time\":[1001,1003,1002],"
                             "\"step\":[1,3,2],\"loss\":[2.5,null,1.25],"
                             "\"rate\":[2.0,6.0,4.0],\"worldSize\":[8,null,8]}");
    auto_free char *losses = text_of(series_losses(&s, 2));
    assert_string_equal(losses, "[2.5,1.25]");
    series_free(&s);
    add(&s, 1, (double)NAN);
    assert_null(series_losses(&s, 8));
    series_free(&s);
}

/* Whatever comes: bounded, in order, evenly spaced, and the newest is there. */
static void many_points_are_thinned(void **state)
{
    (void)state;
    struct series s = {.count = 0};
    for (int64_t step = 1; step <= 100000; step++) {
        add(&s, step, 1.0);
        assert_in_range(s.count, 1, PAGE_POINTS_MAX);
        assert_int_equal(step_of(&s, s.count - 1), step);
    }
    assert_true(s.count > PAGE_POINTS_MAX / 2 - 2);
    assert_true(s.size <= PAGE_POINTS_MAX);
    for (int i = 1; i + 1 < s.count; i++)
        assert_int_equal(step_of(&s, i) - step_of(&s, i - 1), s.stride);
    struct json *losses = series_losses(&s, PAGE_LOSSES_MAX);
    assert_int_equal(json_array_count(losses), PAGE_LOSSES_MAX);
    json_free(losses);
    series_free(&s);
}

/* Its owner needs room for others, and then less so. */
static void fewer_points_are_kept(void **state)
{
    (void)state;
    struct series s = {.count = 0};
    int64_t step = 0;
    for (int most = 0; most <= 48; most += 24) {
        s.most = most;
        for (int i = 0; i < 2000; i++)
            add(&s, ++step, 1.0);
        int bound = most ? most : PAGE_POINTS_MAX;
        assert_in_range(s.count, bound / 2 - 1, bound);
        assert_true(s.size <= bound);
        assert_int_equal(step_of(&s, s.count - 1), step);
    }
    series_free(&s);
}

/* Far ones as well as none at all. */
static void steps_and_ranks_are_bounded(void **state)
{
    (void)state;
    struct series s = {.count = 0};
    static const struct series_point samples[] = {
        {.step = SERIES_STEP_MAX - 1, .world_size = SERIES_WORLD_MAX},
        {.step = SERIES_STEP_MAX, .world_size = SERIES_WORLD_MAX + 1},
        {.step = (INT64_C(1) << 32) + 1},
        {.step = SERIES_STEP_MAX + 1},
        {.step = -1}};
    for (size_t i = 0; i < array_length(samples); i++)
        series_add(&s, &samples[i]);
    auto_free char *all = text_of(series_json(&s, "u"));
    assert_non_null(strstr(all, "\"step\":[17592186044414,17592186044415,4294967297]"));
    assert_non_null(strstr(all, "\"worldSize\":[1048575,null,null]"));
    series_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_ranks_are_bounded),
        cmocka_unit_test(points_are_told_as_they_came),
        cmocka_unit_test(many_points_are_thinned),
        cmocka_unit_test(fewer_points_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
