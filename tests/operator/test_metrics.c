#include "tests/exposition_check.h"
#include "tests/support.h"

#include "base/mem.h"
#include "operator/metrics.h"

#include <pthread.h>
#include <string.h>

static struct job_status status_of(enum condition_type last, int32_t failures)
{
    struct job_status s = {.condition_count = 2, .history.failures = failures};
    s.conditions[0] = (struct condition){.type = CONDITION_CREATED, .status = true};
    s.conditions[1] = (struct condition){.type = last, .status = true};
    return s;
}

static void expect(struct metrics *m, const char *line)
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
    str_init(&text, METRICS_MAX_BYTES);
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
    metrics_status_written(m, "a/j", &none, &running);
    metrics_status_written(m, "a/j", &running, &running);
    metrics_status_written(m, "a/j", &running, &restarting);
    metrics_status_written(m, "a/j", &restarting, &failed);
    metrics_status_written(m, "a/j", &failed, &failed);
    metrics_status_written(m, "b/j", &restarting, &succeeded);
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
        auto_free char *key = xasprintf("%063d/j", i); /* as long as they may be */
        for (int k = 0; k < 2; k++)
            metrics_status_written(m, key, &none, &running);
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
    expect(m, "shoal_operator_training_not_kept 0\n");
    expect(m, "shoal_operator_watch_failing{kind=\"pods\"} 1\n");
    expect(m, "shoal_operator_watch_failing{kind=\"services\"} 0\n");
    expect(m, "shoal_operator_pods 8\n");
    expect(m, "# TYPE shoal_operator_passes_total counter\nshoal_operator_passes_total 3\n");
    expect(m, "process_start_time_seconds 12.034\n");
    metrics_close(m);
}

#define CREATED_MS INT64_C(1767225600000)

static const struct job job = {.uid = "u", .created_ms = CREATED_MS};

/* What a status adds to the one before it; a status that goes back takes nothing away. */
static void time_is_summed_by_kind(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    struct job_status before = {0}, after = {0};
    after.goodput.known = true;
    after.goodput.ms[TRAINING_SPENT_STEP] = 12345;
    after.goodput.ms[GOODPUT_RECOVERY] = 1000;
    metrics_job_seen(m, "ns/j", &job, &before, CREATED_MS);
    metrics_status_written(m, "ns/j", &before, &after);
    metrics_status_written(m, "ns/j", &after, &before);
    metrics_job_seen(m, "other/j", &job, &before, CREATED_MS);
    metrics_status_written(m, "other/j", &before, &after);
    expect(m,
           "shoal_operator_training_seconds_total{job_namespace=\"ns\",kind=\"step\"} 12.345\n"
           "shoal_operator_training_seconds_total{job_namespace=\"ns\",kind=\"recovery\"} 1.000\n"
           "shoal_operator_training_seconds_total{job_namespace=\"other\",kind=\"step\"} 12.345\n");
    metrics_close(m);
}

#define SECONDS_OF_J(kind, value)                                                                  \
    "shoal_operator_job_seconds_total{job_namespace=\"ns\",job_name=\"j\",kind=\"" kind            \
    "\"} " value "\n"

/* An outage goes on while nothing is written, and a new operator counts no more of it than goes by
 * under its eyes. */
static void what_goes_on_is_counted_on(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    struct job_status outage = {0};
    outage.goodput = (struct goodput){.known = true, .now = GOODPUT_RECOVERY};
    outage.goodput.ms[TRAINING_SPENT_STEP] = 100000;
    metrics_job_seen(m, "ns/j", &job, &outage, CREATED_MS + 160000);
    expect(m, SECONDS_OF_J("recovery", "60.000"));
    for (int64_t s = 160; s <= 400; s++)
        metrics_go_on(m, CREATED_MS + s * 1000);
    metrics_go_on(m, CREATED_MS + 300000); /* a clock that goes back */
    expect(m, SECONDS_OF_J("step", "100.000") SECONDS_OF_J("recovery", "300.000"));
    expect(m, "shoal_operator_training_seconds_total{job_namespace=\"ns\",kind=\"recovery\"} "
              "240.000\n");
    /* a process began at 280 s: what was counted since stays, the rest of its time is its own */
    struct job_status trains = outage;
    trains.goodput.now = GOODPUT_INSIDE;
    trains.goodput.ms[GOODPUT_RECOVERY] = 180000;
    trains.goodput.ms[TRAINING_SPENT_STEP] += 150000;
    metrics_status_written(m, "ns/j", &outage, &trains);
    metrics_go_on(m, CREATED_MS + 450000); /* what it does it tells itself */
    expect(m, SECONDS_OF_J("step", "130.000") SECONDS_OF_J("recovery", "300.000"));
    metrics_close(m);
}

/* Whether the page has this text; it is too long for exposition_check(). */
static bool long_page_has(struct metrics *m, const char *text)
{
    auto_str struct str page;
    str_init(&page, METRICS_MAX_BYTES);
    metrics_print(m, &(struct metrics_view){0}, &page);
    assert_false(page.truncated);
    return strstr(str_text(&page), text);
}

static void *print_often(void *metrics)
{
    for (int i = 0; i < 200; i++) {
        auto_str struct str page;
        str_init(&page, METRICS_MAX_BYTES);
        metrics_print(metrics, &(struct metrics_view){0}, &page);
    }
    return NULL;
}

/* One thread tells while another prints: what is not guarded, ThreadSanitizer finds. */
static void another_thread_may_print(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    struct job_status none = {0}, works = status_of(CONDITION_RUNNING, 0);
    works.goodput.known = true;
    pthread_t printer;
    assert_int_equal(pthread_create(&printer, NULL, print_often, m), 0);
    for (int i = 0; i < 200; i++) {
        auto_free char *key = xasprintf("ns/j%d", i % 20);
        works.goodput.ms[TRAINING_SPENT_STEP] = i;
        metrics_job_seen(m, key, &job, &none, CREATED_MS);
        metrics_status_written(m, key, &none, &works);
        metrics_go_on(m, CREATED_MS + i);
        if (i % 3 == 0)
            metrics_forget_job(m, key);
        if (i == 100)
            metrics_forget_all_jobs(m);
        metrics_job_deleted(m, "ns");
    }
    assert_int_equal(pthread_join(printer, NULL), 0);
    assert_true(
        long_page_has(m, "jobs_deleted_total{job_namespace=\"ns\",framework=\"pytorch\"} 200\n"));
    metrics_close(m);
}

/* A job's series go with it; those that are left out are counted, and told of once. */
static void jobs_have_series_up_to_a_limit(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    struct job_status none = {0}, works = status_of(CONDITION_RUNNING, 0),
                      ended = status_of(CONDITION_SUCCEEDED, 0);
    works.goodput.known = ended.goodput.known = true;
    for (int k = 0; k < GOODPUT_KINDS; k++)
        works.goodput.ms[k] = 1000 * (k + 1);
    int told = 0;
    for (int i = 0; i < METRICS_MAX_JOBS + 2; i++) {
        auto_free char *key = xasprintf("%063d/%063d", i, i);
        told += metrics_job_seen(m, key, &job, &none, CREATED_MS);
        metrics_status_written(m, key, &none, &works);
        assert_int_equal(told, i >= METRICS_MAX_JOBS);
    }
    auto_free char *last =
        xasprintf("job_name=\"%063d\",kind=\"suspended\"} ", METRICS_MAX_JOBS - 1);
    auto_free char *beyond = xasprintf("job_name=\"%063d\"", METRICS_MAX_JOBS);
    assert_true(long_page_has(m, last));
    assert_false(long_page_has(m, beyond));
    assert_true(long_page_has(m, "\nshoal_operator_jobs_without_series 2\n"));
    auto_free char *first = xasprintf("%063d/%063d", 0, 0),
                   *second = xasprintf("%063d/%063d", 1, 1);
    metrics_forget_job(m, first);
    metrics_status_written(m, second, &works, &ended);
    assert_true(long_page_has(m, "\nshoal_operator_jobs_without_series 0\n"));
    assert_true(long_page_has(m, beyond));
    metrics_forget_all_jobs(m);
    metrics_job_seen(m, "ns/last", &job, &works, CREATED_MS);
    metrics_job_seen(m, "ns/ended", &job, &ended, CREATED_MS);
    assert_false(long_page_has(m, "job_name=\"ended\""));
    assert_true(long_page_has(
        m, "seconds_total{job_namespace=\"ns\",job_name=\"last\",kind=\"suspended\"} "));
    metrics_close(m);
}

/* Others may write a job's end, or delete it and make another of its name, between two passes. */
static void a_job_that_is_gone_has_no_series(void **state)
{
    (void)state;
    static const struct job another = {.uid = "v", .created_ms = CREATED_MS + 90000};
    struct metrics *m = metrics_open();
    struct job_status works = status_of(CONDITION_RUNNING, 0), none = {0},
                      ended = status_of(CONDITION_FAILED, 0);
    works.goodput.known = true;
    works.goodput.ms[TRAINING_SPENT_STEP] = 7000;
    metrics_job_seen(m, "ns/j", &job, &works, CREATED_MS);
    expect(m, SECONDS_OF_J("step", "7.000"));
    metrics_job_seen(m, "ns/j", &another, &none, CREATED_MS + 90000);
    assert_false(long_page_has(m, "job_name=\"j\",kind=\"step\""));
    metrics_job_seen(m, "ns/j", &job, &works, CREATED_MS);
    metrics_job_seen(m, "ns/j", &job, &ended, CREATED_MS);
    assert_false(long_page_has(m, "job_name=\"j\""));
    metrics_close(m);
}

static void nodes_left_are_counted(void **state)
{
    (void)state;
    struct metrics *m = metrics_open();
    struct avoided_node nodes[] = {{.name = "bad"}, {.name = "worse"}};
    struct job_status before = {0}, after = {0};
    after.history.avoided = nodes;
    after.history.avoided_count = 1;
    metrics_status_written(m, "ns/j", &before, &after);
    before = after;
    after.history.avoided_count = 2;
    metrics_status_written(m, "ns/j", &before, &after);
    before.history.avoided_count = 0;
    metrics_status_written(m, "ns/k", &before, &after);
    expect(m, "shoal_operator_nodes_left_total{node=\"bad\"} 2\n"
              "shoal_operator_nodes_left_total{node=\"worse\"} 2\n");
    /* beyond the limit the others are one, and those that have a series go on */
    before.history.avoided_count = 0;
    after.history.avoided_count = 1;
    for (int i = 0; i < METRICS_MAX_NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        nodes[0].name = name;
        metrics_status_written(m, "ns/j", &before, &after);
    }
    nodes[0].name = "bad";
    metrics_status_written(m, "ns/j", &before, &after);
    assert_true(long_page_has(m, "shoal_operator_nodes_left_total{node=\"bad\"} 3\n"));
    assert_true(
        long_page_has(m, "shoal_operator_nodes_left_total{node=\"" METRICS_OTHERS "\"} 2\n"));
    metrics_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thing_is_counted_once),
        cmocka_unit_test(namespaces_are_capped_and_the_page_is_whole),
        cmocka_unit_test(the_view_is_printed),
        cmocka_unit_test(time_is_summed_by_kind),
        cmocka_unit_test(what_goes_on_is_counted_on),
        cmocka_unit_test(another_thread_may_print),
        cmocka_unit_test(jobs_have_series_up_to_a_limit),
        cmocka_unit_test(a_job_that_is_gone_has_no_series),
        cmocka_unit_test(nodes_left_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
