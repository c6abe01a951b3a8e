/* The operator between two waits, on real sockets: a server with one job in it that knows what it
 * is asked, and whose watches say nothing. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/controller.h"
#include "tests/operator/api.h"

#include <string.h>

enum { KINDS = 4 }; /* jobs, pods, services, autoscalers: as many streams stay open */

#define LIST_OF(items)                                                                             \
    API_TEXT("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}")
/* Of which we know nothing: another program reads them in the pod, and must find them so. */
#define NUMBERS "\"numbers\":[9007199254740993,1e3,0.10,18446744073709551616,-0,1E-400]"
#define JOB                                                                                        \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"4\"}," \
    "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1,\"template\":{\"spec\":{"       \
    "\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"," NUMBERS "}]}}}}}}"
#define MADE                                                                                       \
    API_TEXT("201 Created", "", "{\"metadata\":{\"uid\":\"new\",\"resourceVersion\":\"6\"}}")
#define KEPT(request, text)                                                                        \
    {                                                                                              \
        .to = request, .bytes = text, .then = FAKE_CLOSE                                           \
    }
#define SILENT(request)                                                                            \
    {                                                                                              \
        .to = request, .bytes = FAKE_CHUNKED, .then = FAKE_HOLD                                    \
    }

#define JOBS     "/apis/kubeflow.org/v1/pytorchjobs?"
#define PODS     "/api/v1/pods?"
#define MAKE_POD "POST " IN_NS "pods?fieldValidation=Strict "
#define SERVICES "/api/v1/services?"
#define SCALERS  "/apis/autoscaling/v2/horizontalpodautoscalers?"
#define IN_NS    "/api/v1/namespaces/ns/"
#define STATUS   "PUT /apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/j/status "

#define CLUSTER                                                                                    \
    KEPT("GET " JOBS "limit", LIST_OF(JOB)), KEPT("GET " PODS "limit", LIST_OF("")),               \
        KEPT("GET " SERVICES "limit", LIST_OF("")), KEPT("GET " SCALERS "limit", LIST_OF("")),     \
        SILENT("GET " JOBS "watch"), SILENT("GET " PODS "watch"), SILENT("GET " SERVICES "watch"), \
        SILENT("GET " SCALERS "watch"), KEPT("POST " IN_NS, MADE)

static int64_t test_now_ms;

static int64_t now_ms(void)
{
    return test_now_ms;
}

static const struct clocks test_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

struct fixture {
    struct api api;
    struct controller *controller;
    bool leading;
};

static void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count)
{
    test_now_ms = API_NOW_MS;
    *f = (struct fixture){.leading = true};
    api_open(&f->api, answers, count, NULL);
    const struct controller_options options = {.default_backoff_limit = 6, .clocks = &test_clocks};
    f->controller = controller_open(f->api.kube, &options);
}

static void close_fixture(struct fixture *f)
{
    controller_close(f->controller);
    api_close(&f->api);
}

static size_t count_requests(struct fixture *f, const char *begin, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < fake_server_request_count(f->api.server); i++) {
        auto_free char *text = fake_server_request(f->api.server, i);
        count += strncmp(text, begin, strlen(begin)) == 0 && strstr(text, part);
    }
    return count;
}

static size_t asked(struct fixture *f, const char *begin)
{
    return count_requests(f, begin, "");
}

static void turn(struct fixture *f)
{
    int64_t due_ms;
    struct error err;
    kube_tick(f->api.kube, test_now_ms, &due_ms);
    controller_run_once(f->controller, f->leading);
    assert_ok(http_poll(f->api.http, NULL, 0, 20, &err), &err);
}

/* Turns until each list has its stream, nothing else is in flight, and another turn asks for
 * nothing. */
static void settle(struct fixture *f)
{
    for (;;) {
        uint64_t sent = kube_requests_sent(f->api.kube);
        bool is_quiet = controller_is_ready(f->controller) &&
                        http_in_flight(f->api.http) == KINDS &&
                        fake_server_request_count(f->api.server) == sent &&
                        count_requests(f, "GET", "?limit=") == count_requests(f, "GET", "?watch=");
        turn(f);
        if (is_quiet && sent == kube_requests_sent(f->api.kube))
            return;
    }
}

static struct metrics_view view_of(const struct fixture *f)
{
    struct metrics_view view = {0};
    controller_view(f->controller, &view);
    return view;
}

static void a_job_gets_its_pod_and_service_once(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {CLUSTER, KEPT(STATUS, MADE)};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    assert_false(controller_is_ready(f.controller));
    f.leading = false;
    settle(&f);
    test_now_ms += 1; /* what follows is newer than the lists */
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
    test_now_ms += 4999;
    settle(&f);
    assert_int_equal(asked(&f, "GET " SERVICES "limit"), 1);
    test_now_ms += 1;
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
    test_now_ms += 60000;
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
    test_now_ms += 199;
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 1);
    assert_int_equal(view_of(&f).queue_length, 0); /* its time is to come */
    test_now_ms += 1;
    assert_int_equal(view_of(&f).queue_length, 1);
    settle(&f);
    assert_int_equal(asked(&f, STATUS), 2);
    assert_int_equal(view_of(&f).failed_passes, 2);
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
        test_now_ms += 100;
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
        cmocka_unit_test(a_missing_right_to_list_is_told_on_the_jobs),
        cmocka_unit_test(a_new_job_waits_for_no_finished_ones),
        cmocka_unit_test(closing_cancels_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
