/* The operator between two waits, on real sockets: a server with one job in it that knows what it
 * is asked, and whose watches say nothing. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/apply/executor.h"
#include "operator/cache/informers.h"
#include "tests/operator/controller_fixture.h"

#include <string.h>

static void a_job_gets_its_pod_and_service_once(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {CLUSTER, KEPT(STATUS, MADE)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    assert_false(controller_is_ready(f.controller));
    f.leading = false;
    settle(&f);
    controller_now_ms += 1; /* what follows is newer than the lists */
    f.leading = true;
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_int_equal(asked(&f, "POST " IN_NS "services "), 1);
    assert_int_equal(asked(&f, MAKE_POD), 1);
    assert_int_equal(count_requests(&f, MAKE_POD, NUMBERS), 1);
    struct metrics_view view = view_of(&f);
    assert_true(view.ready);
    assert_int_equal(view.jobs, 1);
    assert_int_equal(view.passes, 1);
    assert_int_equal(view.failed_passes, 0);
    assert_int_equal(view.requests, kube_requests_sent(f.api.kube));

    /* what was made is not seen, and the watches are silent: they are not believed */
    controller_now_ms += 4999;
    settle(&f);
    assert_int_equal(asked(&f, "GET " SERVICES "limit"), 1);
    controller_now_ms += 1;
    settle(&f);
    assert_int_equal(asked(&f, "GET " SERVICES "limit"), 2);
    assert_int_equal(asked(&f, "GET " PODS "limit"), 2);
    assert_int_equal(asked(&f, "GET " SCALERS "limit"), 1); /* none was made */
    assert_int_equal(asked(&f, MAKE_POD), 1);
    close_fixture(&f);
}

static void who_does_not_lead_writes_nothing(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {CLUSTER, KEPT(STATUS, MADE)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    f.leading = false;
    settle(&f);
    assert_true(controller_is_ready(f.controller)); /* to take over at once */
    assert_int_equal(asked(&f, "P"), 0);
    assert_int_equal(view_of(&f).queue_length, 0);
    f.leading = true;
    settle(&f);
    assert_int_equal(asked(&f, MAKE_POD), 1);
    f.leading = false;
    controller_now_ms += 60000;
    settle(&f);
    assert_int_equal(asked(&f, MAKE_POD), 1);
    assert_int_equal(view_of(&f).queue_length, 0);
    close_fixture(&f);
}

/* The API server keeps no history; who leads no more neither knows that nor what it counted. */
static void what_was_counted_is_forgotten_with_the_lease(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        CLUSTER, KEPT(STATUS, API_TEXT("200 OK", "",
                                       "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"6\"},"
                                       "\"status\":{\"conditions\":[]}}"))};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_true(view_of(&f).history_pruned);
    f.leading = false;
    settle(&f);
    assert_false(view_of(&f).history_pruned);
    close_fixture(&f);
}

static void what_fails_is_tried_again_later(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        CLUSTER,
        {.to = STATUS,
         .bytes = API_TEXT("403 Forbidden", "",
                           "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}"),
         .then = FAKE_CLOSE}};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_int_equal(asked(&f, MAKE_POD), 0); /* nothing is done that is not noted */
    assert_int_equal(view_of(&f).failed_passes, 1);
    assert_int_equal(view_of(&f).queue_length, 0);
    controller_now_ms += 199;
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_int_equal(view_of(&f).queue_length, 0); /* its time is to come */
    controller_now_ms += 1;
    assert_int_equal(view_of(&f).queue_length, 1);
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 2);
    assert_int_equal(view_of(&f).failed_passes, 2);
    close_fixture(&f);
}

/* As an operator before this one left it, behind all that the list of pods tells. */
#define LEFT                                                                                       \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"7\"}," \
    "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1,\"template\":{\"spec\":{"       \
    "\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}},\"status\":{\"conditions\":[{"   \
    "\"type\":\"Running\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"m\"}]}}"

static void what_another_operator_left_waits_for_pods(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {KEPT("GET " JOBS "limit", LIST_OF(LEFT)), CLUSTER,
                                                 KEPT(STATUS, MADE)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    settle(&f);
    controller_now_ms += PODS_AWAITED_MS - 1;
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 0);
    controller_now_ms += 1;
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    close_fixture(&f);
}

#define MODIFIED(version, entries, status)                                                          \
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":" \
    "\"u\",\"resourceVersion\":\"" version "\",\"managedFields\":[" entries "]},\"spec\":{"         \
    "\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1,\"template\":{\"spec\":{"                  \
    "\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}}" status "}}\n"
/* The job, running, as the training operator has just written it, behind a version that shows its
 * entries before. No version is newer than the list of pods. */
#define WRITTEN                                                                                         \
    MODIFIED("3", "", "")                                                                               \
    MODIFIED(                                                                                           \
        "5",                                                                                            \
        "{\"manager\":\"manager\",\"operation\":\"Update\",\"subresource\":\"status\",\"time\":"        \
        "\"2026-01-01T00:00:00Z\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{},"                     \
        "\"f:replicaStatuses\":{\".\":{}}}}}",                                                          \
        ",\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"}],\"replicaStatuses\":" \
        "{\"Worker\":{}}}")

static void nothing_is_done_beside_another_operator(void **state)
{
    (void)state;
    auto_free char *stream = xasprintf(FAKE_CHUNKED "%zx\r\n%s\r\n", sizeof WRITTEN - 1, WRITTEN);
    const struct fake_answer answers[] = {
        {.to = "GET " JOBS "watch", .bytes = stream, .then = FAKE_HOLD},
        CLUSTER,
        KEPT(STATUS, MADE),
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    f.leading = false;
    while (!view_of(&f).standing_aside)
        turn(&f);
    settle(&f);
    assert_int_equal(asked(&f, "P"), 0); /* the leader tells it */
    f.leading = true;
    settle(&f);
    assert_int_equal(asked(&f, "P"), 1);
    assert_int_equal(count_requests(&f, "POST " IN_NS "events ", "AnotherOperator"), 1);
    assert_int_equal(count_requests(&f, "POST " IN_NS "events ", "field manager \\\"manager\\\""),
                     1);
    controller_now_ms += 59999;
    settle(&f);
    assert_int_equal(asked(&f, "P"), 1);
    assert_int_equal(controller_run_once(f.controller, true), 1); /* it will wake up by itself */
    controller_now_ms += 1;
    settle(&f);
    assert_false(view_of(&f).standing_aside);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_int_equal(asked(&f, MAKE_POD), 1);
    close_fixture(&f);
}

#define HIDDEN                                                                                     \
    API_TEXT("403 Forbidden", "",                                                                  \
             "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"cannot list resource "   \
             "pods\"}")

/* What cannot be seen is not guessed at: the job says so, and goes on when it is seen. */
static void a_missing_right_to_list_is_told_on_the_jobs(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        KEPT("GET " PODS "limit", HIDDEN),
        KEPT("GET " JOBS "limit", LIST_OF(JOB)),
        KEPT("GET " SERVICES "limit", LIST_OF("")),
        KEPT("GET " SCALERS "limit", LIST_OF("")),
        SILENT("GET " JOBS "watch"),
        SILENT("GET " SERVICES "watch"),
        SILENT("GET " SCALERS "watch"),
        KEPT("POST " IN_NS, MADE),
        KEPT(STATUS, MADE),
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    while (asked(&f, STATUS) == 0 || count_requests(&f, "POST " IN_NS "events ", "") == 0) {
        turn(&f);
        controller_now_ms += 100;
    }
    assert_false(controller_is_ready(f.controller));
    assert_true(count_requests(&f, "GET " PODS, "?limit=") >= 6); /* not for a mere moment */
    assert_int_equal(count_requests(&f, STATUS, "\"type\":\"Waiting\""), 1);
    assert_int_equal(count_requests(&f, STATUS, "cannot list resource pods"), 1);
    assert_int_equal(count_requests(&f, "POST " IN_NS "events ", "cannot list resource pods"), 1);
    for (int i = 0; i < 5; i++)
        turn(&f);
    assert_int_equal(asked(&f, STATUS), 1); /* once */
    assert_int_equal(asked(&f, MAKE_POD), 0);
    assert_int_equal(asked(&f, "POST " IN_NS "services "), 0);
    struct metrics_view view = view_of(&f);
    assert_int_equal(view.watch_count, KINDS);
    for (size_t i = 0; i < view.watch_count; i++)
        assert_int_equal(view.watches[i].failing, strcmp(view.watches[i].kind, "pods") == 0);
    assert_true(view.forbidden_requests > 0);
    close_fixture(&f);
}

#define ENDED_JOBS   30
#define ENDED_STATUS "PUT /apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/e"

/* Many finished jobs want a request each, and none is answered: a new job goes on beside them. */
static void a_new_job_waits_for_no_finished_ones(void **state)
{
    (void)state;
    static const char ended[] =
        "{\"metadata\":{\"name\":\"e%d\",\"namespace\":\"ns\",\"uid\":\"u%d\","
        "\"resourceVersion\":\"3\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{}}},"
        "\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}],"
        "\"replicaStatuses\":{\"Worker\":{\"active\":1}}}},";
    auto_str struct str jobs;
    str_init(&jobs, 1 << 16);
    str_printf(&jobs, "%s", API_TEXT("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"5\"},"));
    str_printf(&jobs, "\"items\":[");
    for (int i = 0; i < ENDED_JOBS; i++)
        str_printf(&jobs, ended, i, i);
    str_printf(&jobs, "%s]}", JOB);
    const struct fake_answer answers[] = {
        KEPT("GET " JOBS "limit", str_text(&jobs)),
        SILENT(ENDED_STATUS),
        CLUSTER,
        KEPT(STATUS, MADE),
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    while (asked(&f, MAKE_POD) == 0 || asked(&f, ENDED_STATUS) < 8)
        turn(&f);
    turn(&f);
    assert_int_equal(asked(&f, ENDED_STATUS), 8);
    assert_int_equal(view_of(&f).queue_length, ENDED_JOBS - 8);
    close_fixture(&f);
}

#define TOLD(step)                                                                                 \
    {                                                                                              \
        .bytes = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"worldSize\":1,\"lastProgressTime" \
                 "\":\"2026-01-01T00:00:00Z\",\"steps\":9,\"step\":" step "}",                     \
        .then = FAKE_CLOSE                                                                         \
    }

/* An interval passes, with a look after each second. */
static void pass_interval(struct fixture *f)
{
    for (int s = 0; s < 15; s++) {
        controller_now_ms += 1000;
        settle(f);
    }
}

/* What the pod tells is written when it is news; it is asked once an interval, by who leads. */
static void a_status_shows_how_the_training_goes(void **state)
{
    (void)state;
    static const struct fake_answer told[] = {TOLD("1"), TOLD("1"), TOLD("2")};
    struct fake_server *agent = fake_server_open(told, array_length(told), NULL);
    auto_free char *pods = xasprintf(LIST_OF(POD), fake_server_port(agent));
    const struct fake_answer answers[] = {KEPT("GET " PODS "limit", pods), CLUSTER,
                                          KEPT(STATUS, MADE)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    f.leading = false;
    settle(&f);
    pass_interval(&f);
    assert_int_equal(fake_server_request_count(agent), 0);
    f.leading = true;
    settle(&f);
    pass_interval(&f);
    assert_int_equal(fake_server_request_count(agent), 1);
    assert_int_equal(count_requests(&f, STATUS, "\"progress\":\"1/9\""), 1);
    assert_int_equal(count_requests(&f, "POST " IN_NS "events ", "TrainingStarted"), 1);
    struct metrics_view view = view_of(&f);
    assert_int_equal(view.asks, 1);
    assert_int_equal(view.unanswered_asks, 0);
    f.leading = false;
    settle(&f);
    pass_interval(&f);
    assert_int_equal(fake_server_request_count(agent), 1);
    close_fixture(&f);
    fake_server_close(agent);
}

/* The job in its next version, after an edit; with a status that somebody has written. */
#define NEXT(status)                                                                                      \
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\"," \
    "\"resourceVersion\":\"5\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1,"           \
    "\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"j\"}]}}}}}" status         \
    "}}\n"

/* A first write meets another version of the job. Only if its status is another one, too, all is
 * listed again, and nothing is written before. */
static void old_lists_are_told_from_edits(void **state)
{
    (void)state;
    static const struct {
        const char *next;
        size_t lists, writes;
    } rows[] = {
        {NEXT(""), 1, 2},
        {NEXT(",\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"}]}"), 2, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *stream =
            xasprintf(FAKE_CHUNKED "%zx\r\n%s\r\n", strlen(rows[i].next), rows[i].next);
        const struct fake_answer answers[] = {
            {.to = "GET " JOBS "watch",
             .bytes = stream,
             .pause = true,
             .pause_at = strlen(FAKE_CHUNKED),
             .then = FAKE_HOLD},
            CLUSTER,
            KEPT(STATUS,
                 API_TEXT("409 Conflict", "", "{\"kind\":\"Status\",\"reason\":\"Conflict\"}")),
        };
        struct fixture f;
        open_fixture(&f, answers, array_length(answers));
        settle(&f);
        assert_int_equal(asked(&f, STATUS), 1);
        controller_now_ms += 1000; /* to try again, if the job were another one */
        settle(&f);
        assert_int_equal(asked(&f, STATUS), 1);
        fake_server_go(f.api.server);
        while (asked(&f, "GET " PODS "limit") + asked(&f, STATUS) < 3)
            turn(&f);
        assert_int_equal(asked(&f, STATUS), rows[i].writes);
        assert_int_equal(asked(&f, "GET " PODS "limit"), rows[i].lists);
        close_fixture(&f);
    }
}

/* The job has ended, its pod is to be deleted as it was seen, and has changed since. */
#define ENDED                                                                                      \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"4\"}," \
    "\"spec\":{\"runPolicy\":{\"cleanPodPolicy\":\"Running\"},\"pytorchReplicaSpecs\":{"           \
    "\"Worker\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]"  \
    "}}}}},\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}],"                \
    "\"replicaStatuses\":{\"Worker\":{\"active\":1}}}}"

/* How, the watch never tells, though it is as new as the delete: pods are listed again. */
static void a_change_that_no_watch_tells_is_looked_for(void **state)
{
    (void)state;
    auto_free char *pods = xasprintf(LIST_OF(POD), 9100);
    const struct fake_answer answers[] = {
        KEPT("GET " PODS "limit", pods),
        KEPT("GET " JOBS "limit", LIST_OF(ENDED)),
        KEPT("DELETE " IN_NS "pods/j-worker-0 ",
             API_TEXT("409 Conflict", "", "{\"kind\":\"Status\",\"reason\":\"Conflict\"}")),
        CLUSTER,
        KEPT(STATUS, MADE),
    };
    static const struct {
        int64_t after_ms;
        size_t deletes, lists;
    } rows[] = {
        {0, 1, 1}, {4999, 1, 1}, {1, 1, 2}, {4999, 1, 2}, {1, 2, 2}, /* the list shows no other */
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    for (size_t i = 0; i < array_length(rows); i++) {
        controller_now_ms += rows[i].after_ms;
        settle(&f);
        if (asked(&f, "DELETE " IN_NS "pods/") != rows[i].deletes ||
            asked(&f, "GET " PODS "limit") != rows[i].lists)
            fail_msg("%zu: %zu deletes, %zu lists", i, asked(&f, "DELETE " IN_NS "pods/"),
                     asked(&f, "GET " PODS "limit"));
    }
    assert_int_equal(asked(&f, "GET " SERVICES "limit"), 1);
    close_fixture(&f);
}

static void closing_cancels_what_is_under_way(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {CLUSTER, SILENT(STATUS)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    while (asked(&f, STATUS) == 0)
        turn(&f);
    close_fixture(&f); /* api_close wants nothing to be in flight */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_gets_its_pod_and_service_once),
        cmocka_unit_test(who_does_not_lead_writes_nothing),
        cmocka_unit_test(what_was_counted_is_forgotten_with_the_lease),
        cmocka_unit_test(what_fails_is_tried_again_later),
        cmocka_unit_test(nothing_is_done_beside_another_operator),
        cmocka_unit_test(a_missing_right_to_list_is_told_on_the_jobs),
        cmocka_unit_test(a_new_job_waits_for_no_finished_ones),
        cmocka_unit_test(a_status_shows_how_the_training_goes),
        cmocka_unit_test(old_lists_are_told_from_edits),
        cmocka_unit_test(a_change_that_no_watch_tells_is_looked_for),
        cmocka_unit_test(closing_cancels_what_is_under_way),
        cmocka_unit_test(what_another_operator_left_waits_for_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
