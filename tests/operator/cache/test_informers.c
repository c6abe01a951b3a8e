/* What is watched, over real sockets: autoscalers are the only kind that may be missing. The server
 * knows no paths, so all kinds are given the same answers. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/cache/informers.h"
#include "tests/operator/api.h"
#include "tests/operator/cache/objects.h"

#include <string.h>

enum { KINDS = 4, STEP_MS = 60 * 1000 }; /* jobs, pods, services, autoscalers; past any backoff */

#define NO_ITEMS API_TEXT("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}")
#define EMPTY                                                                                      \
    {                                                                                              \
        .bytes = NO_ITEMS, .then = FAKE_CLOSE                                                      \
    }
#define LISTED(path)                                                                               \
    {                                                                                              \
        .to = "GET " path, .bytes = NO_ITEMS, .then = FAKE_CLOSE                                   \
    }
#define FORBIDDEN API_STATUS("403 Forbidden", "Forbidden", "may not watch")
#define UNKNOWN   API_STATUS("404 Not Found", "NotFound", "no such kind")

static int64_t test_now_ms;

static int64_t now_ms(void)
{
    return test_now_ms;
}

static const struct clocks test_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

struct fixture {
    struct api api;
    struct cache *cache;
    struct informers *informers;
};

static void on_changed(void *context, const char *key, bool finished)
{
    (void)context, (void)key, (void)finished;
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    fail_msg("trouble: %s", message);
}

static void open_with(struct fixture *f, const struct fake_answer *answers, size_t count,
                      struct informers_options options)
{
    test_now_ms = API_NOW_MS;
    api_open(&f->api, answers, count, NULL);
    const struct cache_options cache = {.changed = on_changed, .warn = on_warn};
    f->cache = cache_open(&cache);
    options.clocks = &test_clocks;
    f->informers = informers_open(f->api.kube, f->cache, &options);
}

static void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count)
{
    open_with(f, answers, count, (struct informers_options){.namespace_ = NULL});
}

static void close_fixture(struct fixture *f)
{
    informers_close(f->informers);
    cache_close(f->cache);
    api_close(&f->api);
}

/* Sends what is wanted after every backoff, and takes the answers. */
static void step(struct fixture *f)
{
    test_now_ms += STEP_MS;
    informers_tick(f->informers);
    api_wait_answers(&f->api);
}

static void what_was_read_once_is_not_given_up(void **state)
{
    (void)state;
    static const struct fake_answer refusals[] = {FORBIDDEN, UNKNOWN};
    for (size_t i = 0; i < array_length(refusals); i++) {
        const struct fake_answer answers[] = {EMPTY, EMPTY, EMPTY, EMPTY, refusals[i]};
        struct fixture f;
        open_fixture(&f, answers, array_length(answers));
        step(&f);
        assert_true(informers_have_synced(f.informers));
        for (int n = 0; n < 3; n++)
            step(&f);
        assert_true(kube_requests_sent(f.api.kube) > KINDS);
        assert_string_equal(informers_autoscaling(f.informers), "v2");
        close_fixture(&f);
    }
}

/* Of each kind it is known whether it can be had, for the metrics; of children also why not. */
static void what_fails_is_known_by_kind(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        LISTED("/apis/kubeflow.org/"),
        {.to = "GET /api/v1/services",
         .bytes = API_TEXT("403 Forbidden", "",
                           "{\"reason\":\"Forbidden\",\"message\":\"may not list services\"}"),
         .then = FAKE_CLOSE},
        {.to = "GET /",
         .bytes = API_TEXT("500 Error", "", "{\"reason\":\"InternalError\"}"),
         .then = FAKE_CLOSE},
    };
    static const struct {
        enum cache_kind kind;
        const char *plural;
        bool failing;
    } rows[] = {{CACHE_JOBS, "pytorchjobs", false},
                {CACHE_PODS, "pods", true},
                {CACHE_SERVICES, "services", true},
                {CACHE_POD_GROUPS, NULL, false},
                {CACHE_AUTOSCALERS, "horizontalpodautoscalers", true}};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    assert_null(informers_forbidden(f.informers)); /* nothing is known yet */
    step(&f);
    kube_tick(f.api.kube, test_now_ms, &(int64_t){0}); /* it decides what failed */
    for (size_t i = 0; i < array_length(rows); i++) {
        bool failing = false;
        const char *plural = informers_watched(f.informers, rows[i].kind, &failing);
        if (rows[i].plural)
            assert_string_equal(plural, rows[i].plural);
        else
            assert_null(plural);
        assert_int_equal(failing, rows[i].failing);
    }
    assert_null(informers_forbidden(f.informers)); /* one refusal may be the server's own trouble */
    for (int n = 0; n < 5; n++)
        step(&f);
    kube_tick(f.api.kube, test_now_ms, &(int64_t){0});
    assert_non_null(strstr(informers_forbidden(f.informers), "may not list services"));
    close_fixture(&f);
}

static bool was_asked(struct fixture *f, const char *part)
{
    for (size_t i = 0; i < fake_server_request_count(f->api.server); i++)
        if (api_request_has(&f->api, i, part))
            return true;
    return false;
}

static void older_autoscalers_are_tried_and_then_none(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {UNKNOWN};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    step(&f);
    assert_true(was_asked(&f, "/autoscaling/v2/"));
    step(&f);
    assert_true(was_asked(&f, "/autoscaling/v2beta2/"));
    for (int n = 0; n < 3; n++)
        step(&f);
    assert_null(informers_autoscaling(f.informers));
    assert_false(informers_have_synced(f.informers)); /* jobs are not to be done without */
    close_fixture(&f);
}

static void a_right_that_is_given_late_counts(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN, EMPTY};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    step(&f);
    assert_null(informers_autoscaling(f.informers));
    assert_false(informers_have_synced(f.informers));
    step(&f);
    assert_true(informers_have_synced(f.informers));
    assert_string_equal(informers_autoscaling(f.informers), "v2");
    close_fixture(&f);
}

static size_t count_texts(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* Nodes are asked for on request, of the whole cluster; without the right all else goes on, which
 * is said once. What is known of them from before is forgotten. */
static void nodes_are_not_needed(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.to = "GET /api/v1/nodes",
         .bytes = API_TEXT("403 Forbidden", "",
                           "{\"reason\":\"Forbidden\",\"message\":\"may not list nodes\"}"),
         .then = FAKE_CLOSE},
        LISTED("/"),
    };
    struct fixture f;
    bool failing;
    char said[4096];
    open_with(&f, answers, array_length(answers),
              (struct informers_options){.namespace_ = "ns", .watch_nodes = true});
    struct json *node = object_from("metadata: {name: a}");
    cache_put(f.cache, CACHE_NODES, node);
    json_free(node);
    support_stderr_begin();
    for (int n = 0; n < 10; n++) {
        step(&f);
        kube_tick(f.api.kube, test_now_ms, &(int64_t){0});
    }
    support_stderr_end(said, sizeof said);
    assert_true(was_asked(&f, "/namespaces/ns/pods"));
    assert_true(informers_have_synced(f.informers));
    assert_null(informers_forbidden(f.informers));
    assert_string_equal(informers_watched(f.informers, CACHE_NODES, &failing), "nodes");
    assert_true(failing);
    assert_int_equal(count_texts(said, "cannot watch nodes"), 1);
    assert_int_equal(count_texts(said, "deploy/watch-nodes"), 1);
    assert_int_equal(cache_count(f.cache, CACHE_NODES), 0);
    close_fixture(&f);
}

/* Kueue is looked for in both versions, which is said once, and found when it comes, or when the
 * right to see it does. */
static void kueue_may_come_later(void **state)
{
    (void)state;
    static const struct fake_answer nothing[] = {
        {.to = "GET /apis/kueue.x-k8s.io/",
         .bytes = API_TEXT("404 Not Found", "",
                           "{\"reason\":\"NotFound\",\"message\":\"no such kind\"}"),
         .then = FAKE_CLOSE},
        LISTED("/"),
    };
    struct fixture f;
    char said[4096];
    open_with(&f, nothing, array_length(nothing),
              (struct informers_options){.namespace_ = "ns", .kueue = true});
    support_stderr_begin();
    for (int n = 0; n < 12; n++) {
        step(&f);
        kube_tick(f.api.kube, test_now_ms, &(int64_t){0});
    }
    support_stderr_end(said, sizeof said);
    assert_true(was_asked(&f, "/kueue.x-k8s.io/v1beta2/namespaces/ns/workloads"));
    assert_true(was_asked(&f, "/kueue.x-k8s.io/v1beta1/namespaces/ns/workloads"));
    assert_true(was_asked(&f, "/kueue.x-k8s.io/v1beta1/resourceflavors"));
    assert_true(was_asked(&f, "/scheduling.k8s.io/v1/priorityclasses"));
    assert_true(informers_have_synced(f.informers));
    assert_null(informers_kueue(f.informers));
    assert_int_equal(count_texts(said, "is Kueue installed?"), 1);
    assert_int_equal(count_texts(said, "cannot watch Kueue"), 1);
    close_fixture(&f);
}

/* Kueue's conversion webhook is down: whoever has no queue does not wait for long. */
static void a_kueue_that_fails_is_waited_for_half_a_minute(void **state)
{
    (void)state;
    static const struct fake_answer broken[] = {
        {.to = "GET /apis/kueue.x-k8s.io/",
         .bytes = API_TEXT("500 Internal Server Error", "", "{\"reason\":\"InternalError\"}"),
         .then = FAKE_CLOSE},
        LISTED("/"),
    };
    struct fixture f;
    open_with(&f, broken, array_length(broken), (struct informers_options){.kueue = true});
    step(&f);
    kube_tick(f.api.kube, test_now_ms, &(int64_t){0}); /* it decides what failed */
    int64_t failed_ms = test_now_ms;
    assert_false(informers_have_synced(f.informers));
    test_now_ms = failed_ms + 30 * 1000 - 1;
    assert_false(informers_have_synced(f.informers));
    test_now_ms = failed_ms + 30 * 1000;
    assert_true(informers_have_synced(f.informers));
    assert_null(informers_kueue(f.informers));
    close_fixture(&f);
}

static void the_newest_kueue_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *to, *version;
    } rows[] = {{"GET /apis/kueue.x-k8s.io/none", "v1beta2"},
                {"GET /apis/kueue.x-k8s.io/v1beta2", "v1beta1"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct fake_answer answers[] = {
            {.to = rows[i].to,
             .bytes = API_TEXT("404 Not Found", "",
                               "{\"reason\":\"NotFound\",\"message\":\"no such kind\"}"),
             .then = FAKE_CLOSE},
            LISTED("/"),
        };
        struct fixture f;
        open_with(&f, answers, array_length(answers), (struct informers_options){.kueue = true});
        for (int n = 0; n < 4; n++) {
            step(&f);
            kube_tick(f.api.kube, test_now_ms, &(int64_t){0});
        }
        assert_true(informers_have_synced(f.informers));
        assert_string_equal(informers_kueue(f.informers), rows[i].version);
        close_fixture(&f);
    }
}

static size_t count_asked(struct fixture *f, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < fake_server_request_count(f->api.server); i++)
        count += api_request_has(&f->api, i, part);
    return count;
}

/* All is listed, nothing is there, and the watches are silent. */
static void open_watching(struct fixture *f)
{
    static const struct fake_answer answers[] = {
        EMPTY, EMPTY, EMPTY, EMPTY, {.bytes = FAKE_CHUNKED, .then = FAKE_HOLD}};
    open_fixture(f, answers, array_length(answers));
    step(f);
    informers_tick(f->informers);
    api_wait_requests(&f->api, (size_t)2 * KINDS);
}

static void a_silent_watch_is_listed_again(void **state)
{
    (void)state;
    struct fixture f;
    open_watching(&f);
    assert_int_equal(count_asked(&f, "labelSelector="), 2 * (KINDS - 1)); /* jobs have no label */
    assert_int_equal(count_asked(&f, "/services?"), 2);
    assert_false(informers_relist_if_silent(f.informers, CACHE_SERVICES,
                                            test_now_ms)); /* the list is as new */
    test_now_ms += 1;
    assert_true(informers_relist_if_silent(f.informers, CACHE_SERVICES, test_now_ms));
    assert_true(
        informers_relist_if_silent(f.informers, CACHE_SERVICES, test_now_ms)); /* it is under way */
    informers_tick(f.informers);
    api_wait_requests(&f.api, (size_t)2 * KINDS + 1);
    assert_int_equal(count_asked(&f, "/services?limit="), 2);
    assert_int_equal(count_asked(&f, "/pods?limit="), 1);
    close_fixture(&f);
}

/* Its events come, but one was lost: the kind is listed again, once in a while. */
static void a_watch_that_lost_an_event_is_listed_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {EMPTY};
    static const struct {
        int64_t after_ms;
        bool again;
    } rows[] = {{0, true}, {0, false}, {ANEW_EVERY_MS - 1, false}, {1, true}};
    struct fixture f;
    size_t lists = 1;
    open_fixture(&f, answers, array_length(answers));
    step(&f);
    for (size_t i = 0; i < array_length(rows); i++) {
        test_now_ms += rows[i].after_ms;
        assert_int_equal(informers_relist_outdated(f.informers, CACHE_SERVICES), rows[i].again);
        if (!rows[i].again)
            continue;
        assert_true(informers_relist_outdated(f.informers, CACHE_SERVICES)); /* it is under way */
        informers_tick(f.informers);
        api_wait_answers(&f.api);
        assert_int_equal(count_asked(&f, "/services?limit="), ++lists);
    }
    assert_false(informers_relist_outdated(f.informers, CACHE_POD_GROUPS)); /* nobody watches */
    close_fixture(&f);
}

/* One kind cannot be listed any more: the others do not wait for it. */
static void a_list_that_fails_is_not_waited_for(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        LISTED("/apis/"), LISTED("/api/v1/pods"), EMPTY, EMPTY, /* the first lists are all good */
        API_BUSY,                                               /* then those of services fail */
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    step(&f);
    assert_true(informers_have_synced(f.informers));
    informers_list_anew(f.informers);
    informers_tick(f.informers);
    assert_true(informers_list_still(f.informers));
    api_wait_answers(&f.api);
    kube_tick(f.api.kube, test_now_ms, &(int64_t){0}); /* it decides what failed */
    bool failing = false;
    assert_string_equal(informers_watched(f.informers, CACHE_SERVICES, &failing), "services");
    assert_true(failing);
    assert_false(informers_list_still(f.informers));
    close_fixture(&f);
}

/* The lists are under way once, however many writes show that the first ones were of the past. */
static void lists_of_the_past_are_made_again(void **state)
{
    (void)state;
    struct fixture f;
    open_watching(&f);
    assert_false(informers_list_still(f.informers));
    informers_list_anew(f.informers);
    assert_true(informers_list_still(f.informers));
    informers_list_anew(f.informers);
    informers_tick(f.informers);
    api_wait_requests(&f.api, (size_t)3 * KINDS);
    assert_int_equal(count_asked(&f, "/services?limit="), 2);
    assert_int_equal(count_asked(&f, "/pods?limit="), 2);
    test_now_ms += ANEW_MAX_MS; /* nobody answers */
    assert_false(informers_list_still(f.informers));
    informers_list_anew(f.informers);
    assert_false(informers_list_still(f.informers));
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_once_is_not_given_up),
        cmocka_unit_test(older_autoscalers_are_tried_and_then_none),
        cmocka_unit_test(a_right_that_is_given_late_counts),
        cmocka_unit_test(what_fails_is_known_by_kind),
        cmocka_unit_test(nodes_are_not_needed),
        cmocka_unit_test(kueue_may_come_later),
        cmocka_unit_test(a_kueue_that_fails_is_waited_for_half_a_minute),
        cmocka_unit_test(the_newest_kueue_is_taken),
        cmocka_unit_test(a_silent_watch_is_listed_again),
        cmocka_unit_test(a_watch_that_lost_an_event_is_listed_again),
        cmocka_unit_test(a_list_that_fails_is_not_waited_for),
        cmocka_unit_test(lists_of_the_past_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
