/* What ranks tell of themselves, as texts, and rank 0's table of it. */
#include "agent/comm/collective_progress.h"
#include "agent/health/activity.h"
#include "agent/health/rank_report.h"
#include "agent/health/rank_table.h"
#include "tests/support.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void test_a_report_arrives_as_it_was_sent(void **state)
{
    (void)state;
    const struct rank_report reports[] = {
        {.phase = RANK_START},
        {.step = 7000000000,
         .phase = RANK_EVALUATION,
         .passed = 0x1f,
         .entered = 12,
         .ended = 11,
         .compute_us = 5000000000,
         .steps = 3,
         .node = 2,
         .pid = 4194304,
         .op = "reduce_scatter",
         .unit = "a unit of two words"},
        {.step = 1, .phase = RANK_END, .op = "barrier"},
    };
    for (size_t i = 0; i < array_length(reports); i++) {
        char text[192], again[192];
        struct rank_report back;
        struct error err;
        rank_report_write(&reports[i], text, sizeof text);
        assert_ok(rank_report_read(text, &back, &err), &err);
        rank_report_write(&back, again, sizeof again);
        assert_string_equal(text, again);
        assert_int_equal(back.step, reports[i].step);
        assert_int_equal(back.phase, reports[i].phase);
        assert_string_equal(back.op, reports[i].op);
        assert_string_equal(back.unit, reports[i].unit);
    }
}

static void test_what_is_no_report_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "hello",
        "1 2 3",
        "1 9 0 1 1 0 1 0 5 -",  /* there is no phase 9 */
        "-1 2 0 1 1 0 1 0 5 -", /* nor a step before the first */
        "1 2 0 1 1 0 1 -7 5 -", /* nor such a pod */
    };
    for (size_t i = 0; i < array_length(texts); i++) {
        struct rank_report report;
        struct error err;
        assert_fails(rank_report_read(texts[i], &report, &err), &err, ERR_INPUT, "a rank's report");
    }
}

static void test_locations(void **state)
{
    (void)state;
    static const struct {
        const char *host, *pod, *host_back, *pod_back;
    } rows[] = {
        {"node-7", "llama-worker-0", "node-7", "llama-worker-0"},
        {"", "", "", ""},
        {"a", "", "a", ""},
        {"a-name-that-is-longer-than-what-there-is-room-for-here", "pod",
         "a-name-that-is-longer-than-what-there-is-room", "pod"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char text[96];
        struct rank_location location;
        rank_location_write(rows[i].host, rows[i].pod, text, sizeof text);
        rank_location_read(text, &location);
        assert_int_equal(strncmp(location.host, rows[i].host_back, strlen(rows[i].host_back)), 0);
        assert_string_equal(location.pod, rows[i].pod_back);
    }
}

static void test_phases_of_a_rank(void **state)
{
    (void)state;
    struct activity a;
    struct rank_report r;
    activity_init(&a);
    assert_int_equal(activity_enter(&a, RANK_STEP), RANK_START);
    activity_read(&a, &r);
    assert_int_equal(r.phase, RANK_FIRST_STEP);
    activity_step(&a, 101, 0.5);
    assert_int_equal(activity_enter(&a, RANK_SAVE), RANK_FIRST_STEP);
    assert_int_equal(activity_enter(&a, RANK_STEP), RANK_SAVE);
    activity_step(&a, 102, 0.25);
    activity_read(&a, &r);
    assert_int_equal(r.phase, RANK_STEP);
    assert_int_equal(r.passed, 1 << RANK_START | 1 << RANK_FIRST_STEP | 1 << RANK_SAVE);
    assert_int_equal(r.step, 102);
    assert_int_equal(r.steps, 2);
    assert_int_equal(r.compute_us, 750000);
    activity_destroy(&a);
    activity_enter(NULL, RANK_DATA); /* nobody reads it */
    activity_step(NULL, 1, 1);
}

static void test_collectives_of_a_rank(void **state)
{
    (void)state;
    struct collective_progress p;
    collective_progress_init(&p);
    collective_progress_enter(&p, "all_gather", "layers.3");
    collective_progress_end(&p, 1);
    collective_progress_enter(&p, "all_reduce", NULL);
    struct collective_state at = collective_progress_read(&p);
    assert_int_equal(at.entered, 2);
    assert_int_equal(at.ended, 1);
    assert_string_equal(at.op, "all_reduce");
    assert_string_equal(at.unit, "");
    collective_progress_destroy(&p);
    collective_progress_enter(NULL, "all_gather", NULL);
    collective_progress_end(NULL, 1);
}

static void test_the_table_is_json(void **state)
{
    (void)state;
    const struct rank_report one = {.step = 5, .phase = RANK_DATA, .entered = 9, .ended = 9};
    const struct rank_row rows[] = {
        {.location = {"node \"a\"", "pod-0"}, .report = &one, .still_s = 31, .state = RANK_IS_HUNG},
        {.report = NULL}, /* not heard yet */
        {.report = &one, .compute_ratio = 1.5, .state = RANK_IS_STRAGGLING},
    };
    auto_str struct str text;
    str_init(&text, RANK_TABLE_BYTES);
    rank_table_json(rows, (int)array_length(rows), &text);
    assert_string_equal(
        str_text(&text),
        "[{\"rank\":0,\"host\":\"node \\\"a\\\"\",\"pod\":\"pod-0\",\"state\":\"hung\",\"phase\":\"data\","
        "\"step\":5,\"collective\":9,\"op\":\"\",\"unit\":\"\",\"waits\":false,\"still_seconds\":31.0},"
        "{\"rank\":2,\"host\":\"\",\"pod\":\"\",\"state\":\"straggling\",\"phase\":\"data\",\"step\":5,"
        "\"collective\":9,\"op\":\"\",\"unit\":\"\",\"waits\":false,\"still_seconds\":0.0,"
        "\"compute_ratio\":1.50}]");
}

/* A table of any size has an end, and whoever holds up the others is in it. */
static void test_the_table_has_an_end(void **state)
{
    (void)state;
    enum { RANKS = 10000, SLOWEST = 9000, HUNG = 1024 };
    const struct rank_report one = {.step = 5};
    struct rank_row *rows = xcalloc(RANKS, sizeof *rows);
    for (int slow = 0; slow < 2; slow++) {
        auto_str struct str text;
        int count = 0;
        str_init(&text, RANK_TABLE_BYTES);
        for (int i = 0; i < RANKS; i++)
            rows[i] = (struct rank_row){.report = &one,
                                        .compute_ratio = i == SLOWEST ? 1.2 : 1,
                                        .state = i == HUNG          ? RANK_IS_HUNG
                                                 : slow && i > HUNG ? RANK_IS_STRAGGLING
                                                                    : RANK_IS_WELL};
        rank_table_json(rows, RANKS, &text);
        assert_false(text.truncated);
        for (const char *at = str_text(&text); (at = strstr(at, "{\"rank\":")); at++)
            count++;
        assert_int_equal(count, slow ? RANK_TABLE_ROWS + RANK_TABLE_MORE + 1 : RANK_TABLE_ROWS + 2);
        assert_non_null(strstr(str_text(&text), "\"rank\":9000,"));
        assert_non_null(strstr(str_text(&text), "\"rank\":1024,"));
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_arrives_as_it_was_sent),
        cmocka_unit_test(test_what_is_no_report_is_refused),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_phases_of_a_rank),
        cmocka_unit_test(test_collectives_of_a_rank),
        cmocka_unit_test(test_the_table_is_json),
        cmocka_unit_test(test_the_table_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
