/* What the live page is told: rows, one job, and the messages of what has changed. */
#include "operator/board/board.h"

#include "base/httpd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "tests/operator/board/board_fixture.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the job llm, which trains: a worker that waits, the master, and a pod of another job. */
static void tell_of_three_pods(struct board *b, struct board_world *w)
{
    w->pods[0] = (struct pod){.name = "llm-worker-1",
                              .owner_uid = w->uid,
                              .type = REPLICA_WORKER,
                              .index = 1,
                              .phase = POD_PENDING,
                              .waiting_reason = "ImagePullBackOff",
                              .waiting_message = "no such image"};
    w->pods[1] = (struct pod){.name = "llm-master-0",
                              .owner_uid = w->uid,
                              .phase = POD_RUNNING,
                              .node = "n1",
                              .restart_count = 1};
    w->pods[2] = (struct pod){.name = "llm-worker-2", .owner_uid = "another", .index = 2};
    w->snapshot.pod_count = 3;
    board_set_operator(b, true, "operator-1", 1);
    board_tell(b, w);
    for (int64_t step = 10; step <= 50; step += 10) {
        board_train(w, step, 5.0 / (double)step);
        board_tell(b, w);
    }
}

static void expect_row(const struct json *all)
{
    board_expect(all, "server", "\"operator\"");
    board_expect(all, "leading", "true");
    board_expect(all, "leader", "\"operator-1\"");
    board_expect(all, "hidden", "0");
    board_expect(all, "time", "\"2026-01-01T01:00:00Z\"");
    board_expect(all, "jobs.0.name", "\"llm\"");
    board_expect(all, "jobs.0.state", "\"Running\"");
    board_expect(all, "jobs.0.creationTimestamp", "\"2026-01-01T00:00:00Z\"");
    board_expect(all, "jobs.0.replicas.Worker",
                 "{\"replicas\":3,\"active\":2,\"succeeded\":0,\"failed\":1}");
    board_expect(all, "jobs.0.gpus", "32");
    board_expect(all, "jobs.0.restarts", "2");
    board_expect(all, "jobs.0.training.progress", "\"50/100\"");
    board_expect(all, "jobs.0.training.goodput", "1.0");
    assert_non_null(board_at(all, "jobs.0.training.seconds"));
    assert_null(board_at(all, "jobs.0.training.processSeconds"));
    assert_null(board_at(all, "jobs.0.training.furthestStep"));
    board_expect(all, "jobs.0.losses", "[0.5,0.25,0.16667,0.125,0.1]");
    assert_null(board_at(all, "jobs.0.waiting"));
    assert_null(board_at(all, "jobs.0.pods"));
}

static void a_job_has_its_row_and_more(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS + 3600 * 1000;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    board_make_job(&w, "llm");
    tell_of_three_pods(b, &w);
    struct json *all = board_read(b, PAGE_JOBS_PATH);
    expect_row(all);
    struct json *one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    board_expect(one, "name", "\"llm\"");
    board_expect(one, "series.step", "[10,20,30,40,50]");
    board_expect(one, "timeline.0.kind", "\"step\"");
    board_expect(one, "conditions.0.reason", "\"PyTorchJobRunning\"");
    assert_int_equal(json_array_count(board_at(one, "pods")), 2); /* the third is another's */
    board_expect(one, "pods.0",
                 "{\"name\":\"llm-master-0\",\"type\":\"Master\",\"index\":0,\"phase\":\"Running\","
                 "\"node\":\"n1\",\"restarts\":1}");
    board_expect(one, "pods.1.waiting.reason", "\"ImagePullBackOff\"");
    auto_free char *text = json_print(one, JSON_COMPACT);
    assert_null(strstr(text, "secret"));
    assert_null(board_read(b, PAGE_JOBS_PATH "/ns/other"));
    assert_null(board_read(b, PAGE_JOBS_PATH "/"));
    json_free(all);
    json_free(one);
    board_close(b);
}

/* What its account says in the end, also when the series are gone. */
static void a_job_that_has_ended_keeps_its_goodput(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS + 100 * 1000;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    board_make_job(&w, "llm");
    board_train(&w, 60, 0.5);
    w.status.goodput.ms[GOODPUT_RECOVERY] = 40 * 1000;
    w.status.completion_ms = BOARD_NOW_MS + 100 * 1000;
    w.status.conditions[0].type = CONDITION_SUCCEEDED;
    board_tell(b, &w);
    board_now_ms += 24LL * 3600 * 1000;
    board_tell(b, &w);
    struct json *all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "jobs.0.state", "\"Succeeded\"");
    board_expect(all, "jobs.0.training.goodput", "0.6");
    board_expect(all, "jobs.0.training.goodputPercent", "\"60.0%\"");
    board_expect(all, "jobs.0.training.seconds", "{\"step\":60.0,\"recovery\":40.0}");
    assert_null(board_at(all, "jobs.0.training.secondsKind"));
    json_free(all);
    board_close(b);
}

/* Texts of others stay texts, however long and whatever is in them. */
static void hostile_texts_stay_texts(void **state)
{
    (void)state;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    char message[4000];
    memset(message, '\"', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    memcpy(message, "<script>alert(1)</script>", strlen("<script>alert(1)</script>"));
    board_make_job(&w, "llm");
    w.status.conditions[0].type = CONDITION_WAITING;
    w.status.conditions[0].message = message;
    board_tell(b, &w);
    struct json *all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "jobs.0.state", "\"Waiting\"");
    const char *shown = json_as_text(board_at(all, "jobs.0.waiting.message"));
    assert_true(strlen(shown) <= PAGE_MESSAGE_BYTES);
    assert_memory_equal(shown, message, 400);
    json_free(all);
    w.status.conditions[0].type = CONDITION_RUNNING;
    board_train(&w, 1, 1.0);
    w.status.training.hung_rank = 3;
    board_tell(b, &w);
    all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "jobs.0.waiting.reason", "\"RankHung\"");
    json_free(all);
    board_close(b);
}

static void events_are_told_once_and_the_newest_first(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    board_make_job(&w, "llm");
    for (int i = 0; i < BOARD_EVENTS_MAX + 5; i++) {
        auto_free char *message = xasprintf("number %d", i / 2 * 2);
        const struct action event = {
            .kind = ACTION_EVENT, .event_type = EVENT_WARNING, .reason = "R", .message = message};
        board_now_ms += 1000;
        board_tell_with(b, &w, &event, 1); /* a plan that failed comes again */
    }
    struct json *one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_int_equal(json_array_count(board_at(one, "events")), 8);
    json_free(one);
    const struct action other = {.kind = ACTION_EVENT,
                                 .event_type = EVENT_WARNING,
                                 .reason = "of another reason",
                                 .message = "number 14"};
    board_tell_with(b, &w, &other, 1);
    one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_int_equal(json_array_count(board_at(one, "events")), 9);
    board_expect(one, "events.1",
                 "{\"time\":\"2026-01-01T00:00:15Z\",\"type\":\"Warning\",\"reason\":\"R\","
                 "\"message\":\"number 14\"}");
    json_free(one);
    for (int i = 0; i < 3 * BOARD_EVENTS_MAX; i++) {
        auto_free char *message = xasprintf("another %d", i);
        const struct action event = {.kind = ACTION_EVENT, .reason = "R", .message = message};
        board_tell_with(b, &w, &event, 1);
    }
    snprintf(w.uid, sizeof w.uid, "uid-2"); /* another job of that name */
    one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_int_equal(json_array_count(board_at(one, "events")), BOARD_EVENTS_MAX);
    json_free(one);
    board_tell(b, &w);
    one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_int_equal(json_array_count(board_at(one, "events")), 0);
    json_free(one);
    board_close(b);
}

static void changes_are_told_to_who_listens(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_heard m = {.count = 0};
    struct board_world w;
    board_make_job(&w, "a");
    board_tell(b, &w);
    board_send(b, false, board_keep, &m); /* counted only */
    assert_int_equal(m.count, 0);
    struct json *all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "version", "1");
    json_free(all);
    board_send(b, true, board_keep, &m); /* nothing new: a sign of life, for the first is overdue */
    assert_int_equal(m.count, 1);
    board_expect(m.list[0], "version", "1");
    assert_null(board_at(m.list[0], "jobs"));
    board_heard_forget(&m);
    board_tell(b, &w); /* the same again is no news */
    board_send(b, true, board_keep, &m);
    assert_int_equal(m.count, 0);
    board_train(&w, 1, 2.0);
    board_tell(b, &w);
    board_make_job(&w, "b");
    board_tell(b, &w);
    board_forget(b, "ns/b");
    board_forget(b, "ns/unknown");
    board_send(b, true, board_keep, &m);
    assert_int_equal(m.count, 1);
    board_expect(m.list[0], "version", "2");
    board_expect(m.list[0], "after", "1");
    assert_int_equal(json_array_count(board_at(m.list[0], "jobs")), 1);
    board_expect(m.list[0], "jobs.0.training.loss", "2.0");
    board_expect(m.list[0], "gone", "[\"ns/b\"]");
    board_heard_forget(&m);
    board_now_ms += PAGE_SIGN_OF_LIFE_MS;
    board_send(b, true, board_keep, &m);
    assert_int_equal(m.count, 1);
    board_expect(m.list[0], "version", "2");
    board_heard_forget(&m);
    board_set_operator(b, true, "operator-1", 1);
    board_send(b, true, board_keep, &m);
    board_expect(m.list[0], "reload", "true");
    board_heard_forget(&m);
    board_close(b);
}

/* A burst takes several messages; more than that is read anew. */
static void what_is_too_much_is_asked_for_again(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_heard m = {.count = 0};
    for (int round = 0; round < 2; round++) {
        int64_t version = 0, rows = 0;
        for (int i = 0; i < (round ? 2000 : 100); i++) {
            struct board_world w;
            auto_free char *name = xasprintf("job-%d", i);
            board_make_job(&w, name);
            board_train(&w, round + 1, 1.0);
            board_tell(b, &w);
        }
        board_send(b, true, board_keep, &m);
        if (round) {
            assert_int_equal(m.count, 1);
            board_expect(m.list[0], "reload", "true");
        } else {
            assert_in_range(m.count, 2, BOARD_MESSAGES_MAX);
        }
        for (int i = 0; i < m.count && !round; i++) {
            rows += (int64_t)json_array_count(board_at(m.list[i], "jobs"));
            assert_int_equal(json_as_integer(board_at(m.list[i], "after")), version);
            version = json_as_integer(board_at(m.list[i], "version"));
        }
        assert_int_equal(rows, round ? 0 : 100);
        board_heard_forget(&m);
    }
    for (int i = 0; i < 1000; i++) {
        auto_free char *key = xasprintf("ns/job-%d", i);
        board_forget(b, key);
    }
    board_send(b, true, board_keep, &m);
    assert_int_equal(m.count, 1);
    board_expect(m.list[0], "reload", "true");
    board_heard_forget(&m);
    board_close(b);
}

static void there_is_an_end_to_what_is_kept(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    for (int i = 0; i < BOARD_JOBS_MAX + 7; i++) {
        struct board_world w;
        auto_free char *name = xasprintf("job-%d", i);
        board_make_job(&w, name);
        board_tell(b, &w);
    }
    board_set_operator(b, true, "", BOARD_JOBS_MAX + 7);
    struct json *all = board_read(b, PAGE_JOBS_PATH);
    assert_int_equal(json_array_count(board_at(all, "jobs")), BOARD_JOBS_MAX);
    board_expect(all, "hidden", "7");
    json_free(all);
    /* a job goes, and what was left out has its turn: all are shown */
    board_forget(b, "ns/job-0");
    for (int i = 0; i < 6; i++) {
        auto_free char *gone = xasprintf("ns/job-%d", i + 1);
        board_forget(b, gone);
    }
    for (int i = BOARD_JOBS_MAX; i < BOARD_JOBS_MAX + 7; i++) {
        struct board_world w;
        auto_free char *name = xasprintf("job-%d", i);
        board_make_job(&w, name);
        board_tell(b, &w);
    }
    board_set_operator(b, true, "", BOARD_JOBS_MAX);
    all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "hidden", "0");
    json_free(all);
    /* who stands by shows who leads, and no jobs that have got old */
    board_forget_all(b);
    board_set_operator(b, false, "operator-2", BOARD_JOBS_MAX + 7);
    board_set_namespace(b, "ml");
    all = board_read(b, PAGE_JOBS_PATH);
    board_expect(all, "leading", "false");
    board_expect(all, "leader", "\"operator-2\"");
    board_expect(all, "namespace", "\"ml\"");
    board_expect(all, "jobs", "[]");
    board_expect(all, "hidden", "0");
    json_free(all);
    board_close(b);
}

/* How many there are is told once a second, and a job of that time may be gone, or not here yet. */
static void a_job_that_comes_or_goes_is_not_hidden(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    board_make_job(&w, "llm");
    board_set_operator(b, true, "", 1);
    for (int here = 0; here < 3; here++) {
        if (here == 1)
            board_tell(b, &w);
        if (here == 2)
            board_forget(b, "ns/llm");
        struct json *all = board_read(b, PAGE_JOBS_PATH);
        board_expect(all, "hidden", "0");
        json_free(all);
    }
    board_close(b);
}

/* What another operator saw is known as sums, what this one sees in order. */
static void a_job_of_another_operator_has_its_past_summed_up(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_world w;
    board_make_job(&w, "new");
    w.status.goodput.known = true;
    board_tell(b, &w);
    board_train(&w, 5, 1.0);
    board_tell(b, &w);
    board_make_job(&w, "old");
    board_train(&w, 5, 1.0);
    board_tell(b, &w);
    board_train(&w, 9, 1.0);
    board_tell(b, &w);
    struct json *new = board_read(b, PAGE_JOBS_PATH "/ns/new");
    struct json *old = board_read(b, PAGE_JOBS_PATH "/ns/old");
    assert_null(board_at(new, "timeline.0.summed"));
    board_expect(new, "timeline.0.kind", "\"step\"");
    board_expect(old, "timeline.0.summed", "true");
    assert_non_null(board_at(old, "timeline.1"));
    assert_null(board_at(old, "timeline.1.summed"));
    json_free(new);
    json_free(old);
    board_close(b);
}

/* How a job went is let go an hour after its end. */
static void what_ended_long_ago_has_no_series(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_heard m = {.count = 0};
    struct board_world w;
    board_make_job(&w, "llm");
    board_train(&w, 5, 1.0);
    w.status.completion_ms = BOARD_NOW_MS;
    board_tell(b, &w);
    struct json *one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_non_null(board_at(one, "series"));
    json_free(one);
    board_now_ms += 2 * 3600 * 1000;
    board_send(b, false, board_keep, &m);
    one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_null(board_at(one, "series"));
    assert_non_null(board_at(one, "timeline"));
    json_free(one);
    board_close(b);
}

static void nobody_looks_at_no_board(void **state)
{
    (void)state;
    struct board_world w;
    board_make_job(&w, "llm");
    board_tell(NULL, &w);
    board_forget(NULL, "ns/llm");
    board_forget_all(NULL);
    board_set_operator(NULL, true, "", 0);
    board_set_namespace(NULL, "");
    board_send(NULL, true, board_keep, NULL);
    assert_null(board_looked_at(NULL));
    board_detail(NULL, "ns/llm", "{}", 2);
    board_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_its_row_and_more),
        cmocka_unit_test(a_job_that_has_ended_keeps_its_goodput),
        cmocka_unit_test(hostile_texts_stay_texts),
        cmocka_unit_test(events_are_told_once_and_the_newest_first),
        cmocka_unit_test(changes_are_told_to_who_listens),
        cmocka_unit_test(what_is_too_much_is_asked_for_again),
        cmocka_unit_test(there_is_an_end_to_what_is_kept),
        cmocka_unit_test(a_job_that_comes_or_goes_is_not_hidden),
        cmocka_unit_test(a_job_of_another_operator_has_its_past_summed_up),
        cmocka_unit_test(what_ended_long_ago_has_no_series),
        cmocka_unit_test(nobody_looks_at_no_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
