#include "tests/exposition_check.h"
#include "tests/support.h"

#include "base/mem.h"
#include "operator/metrics.h"

#include <string.h>

static struct job_status status_of(enum condition_type last, int32_t failures)
{
    struct job_status s = {.condition_count = 2, .history.failures = failures};
    s.conditions[0] = (struct condition){.type = CONDITION_CREATED, .status = true};
    s.conditions[1] = (struct condition){.type = last, .status = true};
    return s;
}

static void expect(const struct metrics *m, const char *line)
{
    const struct metrics_view view = {.leading = true,
                                      .history_pruned = true,
                                      .jobs_in_state = {[CONDITION_FAILED] = 4},
                                      .pods = 8,
                                      .passes = 3,
                                      .failed_requests = 5,
                                      .forbidden_requests = 6,
                                      .watches = {{"pods", true}, {"services", false}},
                                      .watch_count = 2,
                                      .start_ms = 12034};
    auto_str struct str text;
    str_init(&text, 1 << 16);
    metrics_print(m, &view, &text);
    exposition_check(str_text(&text));
    if (!strstr(str_text(&text), line))
        fail_msg("no line '%s' in\n%s", line, str_text(&text));
}

static void each_thing_is_counted_once(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    const struct job_status none = {0}, running = status_of(CONDITION_RUNNING, 0),
                            restarting = status_of(CONDITION_RESTARTING, 2),
                            failed = status_of(CONDITION_FAILED, 3),
                            succeeded = status_of(CONDITION_SUCCEEDED, 2);
    metrics_status_written(m, "a", &none, &running);
    metrics_status_written(m, "a", &running, &running);
    metrics_status_written(m, "a", &running, &restarting);
    metrics_status_written(m, "a", &restarting, &failed);
    metrics_status_written(m, "a", &failed, &failed);
    metrics_status_written(m, "b", &restarting, &succeeded);
    metrics_job_deleted(m, "b");
    expect(m,
           "training_operator_jobs_created_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n");
    expect(m, "jobs_restarted_total{job_namespace=\"a\",framework=\"pytorch\"} 2\n");
    expect(m, "jobs_failed_total{job_namespace=\"a\",framework=\"pytorch\"} 1\n");
    expect(m, "jobs_successful_total{job_namespace=\"a\",framework=\"pytorch\"} 0\n");
    expect(m, "jobs_successful_total{job_namespace=\"b\",framework=\"pytorch\"} 1\n");
    expect(m, "jobs_deleted_total{job_namespace=\"b\",framework=\"pytorch\"} 1\n");
    metrics_close(m);
}

static void namespaces_are_capped_and_the_page_is_whole(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    const struct job_status none = {0}, running = status_of(CONDITION_RUNNING, 0);
    for (int i = 0; i < METRICS_MAX_NAMESPACES + 2; i++) {
        auto_free char *name = xasprintf("%063d", i); /* as long as they may be */
        for (int k = 0; k < 2; k++)
            metrics_status_written(m, name, &none, &running);
    }
    auto_str struct str text;
    str_init(&text, METRICS_MAX_BYTES);
    metrics_print(m, &(struct metrics_view){.passes = 3}, &text);
    assert_false(text.truncated);
    assert_non_null(strstr(str_text(&text), "created_total{job_namespace=\"" METRICS_OTHERS
                                            "\",framework=\"pytorch\"} 4\n"));
    assert_non_null(strstr(str_text(&text), "000999\",framework=\"pytorch\"} 2\n"));
    assert_null(strstr(str_text(&text), "001000\""));
    metrics_close(m);
}

static void the_view_is_printed(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    expect(m, "# TYPE shoal_operator_leader gauge\nshoal_operator_leader 1\n");
    expect(m, "shoal_operator_jobs_in_state{state=\"Failed\"} 4\n");
    expect(m, "shoal_operator_jobs_in_state{state=\"Running\"} 0\n");
    expect(m, "shoal_operator_api_requests_failed_total 5\n");
    expect(m, "shoal_operator_api_requests_forbidden_total 6\n");
    expect(m, "shoal_operator_history_not_kept 1\n");
    expect(m, "shoal_operator_watch_failing{kind=\"pods\"} 1\n");
    expect(m, "shoal_operator_watch_failing{kind=\"services\"} 0\n");
    expect(m, "shoal_operator_pods 8\n");
    expect(m, "# TYPE shoal_operator_passes_total counter\nshoal_operator_passes_total 3\n");
    expect(m, "process_start_time_seconds 12.034\n");
    metrics_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thing_is_counted_once),
        cmocka_unit_test(namespaces_are_capped_and_the_page_is_whole),
        cmocka_unit_test(the_view_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
