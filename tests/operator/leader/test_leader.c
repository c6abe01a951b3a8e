/* Leader election over a real socket: what the machine of lease.h wants becomes requests, and their
 * answers come back to it. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/leader/leader.h"
#include "tests/operator/api.h"

#include <stdio.h>
#include <string.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/n/leases"
#define LEASE(status, holder, version)                                                             \
    API_ANSWER(status, "",                                                                         \
               "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"      \
               "\"name\":\"l\",\"namespace\":\"n\",\"resourceVersion\":\"" version                 \
               "\"},\"spec\":{\"holderIdentity\":\"" holder "\",\"leaseDurationSeconds\":15,"      \
               "\"leaseTransitions\":3,\"acquireTime\":\"2025-01-01T00:00:00.000000Z\"}}")
#define ABSENT API_STATUS("404 Not Found", "NotFound", "no lease l")

/* Both clocks are the test's; the monotonic one has an origin of its own. */
static const struct api *clock_owner;

static int64_t wall_ms(void)
{
    return clock_owner->now_ms;
}
static int64_t steady_ms(void)
{
    return clock_owner->now_ms - API_NOW_MS + 5;
}
static const struct clocks clocks = {.wall_ms = wall_ms, .steady_ms = steady_ms};

static struct leader *open_leader(struct api *api, const struct fake_answer *answers, size_t count)
{
    struct leader_options options = {.namespace_ = "n",
                                     .name = "l",
                                     .lease = {.identity = "me",
                                               .duration_ms = 15000,
                                               .renew_deadline_ms = 10000,
                                               .retry_ms = 2000,
                                               .seed = 1}};
    api_open(api, answers, count, NULL);
    clock_owner = api;
    return leader_open(api->kube, &options, &clocks);
}

static char told[1000]; /* by the last settle(), a line each */

static void note_news(struct leader *leader)
{
    const char *news = leader_new_failure(leader);
    size_t length = strlen(told);
    if (news)
        snprintf(told + length, sizeof told - length, "%s\n", news);
}

/* Lets it do all that it wants to do at this moment; returns when it wants to do more. */
static int64_t settle(struct api *api, struct leader *leader)
{
    told[0] = '\0';
    for (;;) {
        int64_t wait_ms = leader_tick(leader), due_ms;
        note_news(leader);
        if (http_in_flight(api->http) == 0)
            return wait_ms;
        api_wait_answers(api);
        kube_tick(api->kube, api->now_ms, &due_ms);
    }
}

/* Fails unless it told this, once; "": nothing. */
static void assert_told(const char *text)
{
    const char *end = strchr(told, '\n');
    if (!strstr(told, text) || !*told != !*text || (end && end[1]))
        fail_msg("told is \"%s\", not \"%s\"", told, text);
}

static void makes_renews_and_releases_a_lease(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {ABSENT, LEASE("201 Created", "me", "1"),
                                                 LEASE("200 OK", "me", "2"),
                                                 LEASE("200 OK", "", "3")};
    struct api api;
    struct leader *leader = open_leader(&api, answers, 4);
    assert_false(leader_is_held(leader));
    assert_int_equal(settle(&api, leader), 2000);
    assert_true(leader_is_held(leader));
    assert_string_equal(leader_holder(leader), "me");
    assert_true(api_request_has(&api, 0, "GET " LEASES "/l HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 1, "POST " LEASES " HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 1, "\"holderIdentity\":\"me\""));
    assert_true(api_request_has(&api, 1, "\"renewTime\":\"2026-01-01T00:00:00.000000Z\""));
    assert_false(api_request_has(&api, 1, "resourceVersion"));

    api.now_ms += 2000;
    settle(&api, leader);
    assert_true(api_request_has(&api, 2, "PUT " LEASES "/l HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 2, "\"resourceVersion\":\"1\""));
    assert_true(api_request_has(&api, 2, "\"renewTime\":\"2026-01-01T00:00:02.000000Z\""));
    assert_true(api_request_has(&api, 2, "\"acquireTime\":\"2025-01-01T00:00:00.000000Z\""));
    api.now_ms += 9999;
    assert_true(leader_is_held(leader));
    api.now_ms -= 9999;

    leader_release(leader);
    assert_false(leader_is_held(leader));
    assert_int_equal(settle(&api, leader), INT64_MAX);
    assert_true(leader_is_over(leader));
    assert_true(api_request_has(&api, 3, "\"resourceVersion\":\"2\""));
    assert_true(api_request_has(&api, 3, "\"holderIdentity\":\"\""));
    assert_int_equal(fake_server_request_count(api.server), 4);
    leader_close(leader);
    api_close(&api);
}

static void a_conflict_leaves_it_to_the_other(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        LEASE("200 OK", "", "7"), API_STATUS("409 Conflict", "Conflict", "it was modified"),
        LEASE("200 OK", "other", "8")};
    struct api api;
    struct leader *leader = open_leader(&api, answers, 3);
    api.now_ms += settle(&api, leader);
    assert_false(leader_is_held(leader));
    assert_told("");
    assert_true(api_request_has(&api, 1, "\"resourceVersion\":\"7\""));
    assert_true(api_request_has(&api, 1, "\"leaseTransitions\":4"));
    settle(&api, leader);
    assert_string_equal(leader_holder(leader), "other");
    assert_int_equal(fake_server_request_count(api.server), 3);
    leader_close(leader);
    api_close(&api);
}

static void failures_are_kept_for_people(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_STATUS("403 Forbidden", "Forbidden", "leases is forbidden: User u cannot get"),
        API_ANSWER("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":7}"),
        API_STATUS("500 Error", "InternalError", "etcd is away"), LEASE("200 OK", "other", "8")};
    struct api api;
    struct leader *leader = open_leader(&api, answers, 4);
    static const char *const news[] = {"GET " LEASES
                                       "/l: leases is forbidden: User u cannot get (403 Forbidden)",
                                       "Lease: spec: must be a mapping", "etcd is away", ""};
    for (size_t i = 0; i < array_length(news); i++) {
        int64_t wait_ms = settle(&api, leader);
        assert_in_range(wait_ms, 2000, 2400);
        assert_told(news[i]);
        assert_int_equal(fake_server_request_count(api.server), i + 1);
        api.now_ms += wait_ms;
    }
    leader_close(leader);
    api_close(&api);
}

/* Each try reads before it writes: that it may read is no news, and is not told as
 * the end of it. */
static void each_trouble_is_news_once(void **state)
{
    (void)state;
#define NO_GET API_STATUS("403 Forbidden", "Forbidden", "cannot get")
#define NO_PUT API_STATUS("403 Forbidden", "Forbidden", "cannot update")
#define AWAY   API_STATUS("500 Error", "InternalError", "away")
#define SLOW   API_STATUS("504 Gateway Timeout", "Timeout", "slow")
#define FREE   LEASE("200 OK", "", "7")
    static const struct fake_answer answers[] = {NO_GET, NO_GET, FREE,   NO_PUT, FREE, NO_PUT, AWAY,
                                                 SLOW,   AWAY,   NO_GET, FREE,   FREE, AWAY};
    /* In each try. */
    static const char *const news[] = {"cannot get", "", "cannot update", "", "away",
                                       "",           "", "cannot get",    "", "away"};
    struct api api;
    struct leader *leader = open_leader(&api, answers, array_length(answers));
    for (size_t i = 0; i < array_length(news); i++) {
        api.now_ms += settle(&api, leader);
        assert_told(news[i]);
    }
    leader_close(leader);
    api_close(&api);
}

static void a_namespace_that_is_not_there_is_told_once(void **state)
{
    (void)state;
#define NOWHERE API_STATUS("404 Not Found", "NotFound", "namespaces \\\"n\\\" not found")
    static const struct fake_answer answers[] = {ABSENT,  NOWHERE, ABSENT,
                                                 NOWHERE, AWAY,    ABSENT,
                                                 NOWHERE, ABSENT,  LEASE("201 Created", "me", "1")};
    static const char *const news[] = {
        "POST " LEASES ": namespaces \"n\" not found (404 NotFound). The namespace of the Lease "
        "must exist: kubectl create namespace n, or name another in MY_POD_NAMESPACE",
        "", "away", "must exist: kubectl create namespace n", ""};
    struct api api;
    struct leader *leader = open_leader(&api, answers, array_length(answers));
    for (size_t i = 0; i < array_length(news); i++) {
        assert_false(leader_is_held(leader));
        int64_t wait_ms = settle(&api, leader);
        assert_in_range(wait_ms, 2000, 2400); /* it is tried again, and not at once */
        assert_told(news[i]);
        api.now_ms += wait_ms;
    }
    assert_true(leader_is_held(leader));
    leader_close(leader);
    api_close(&api);
}

static void closing_cancels(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    struct api api;
    struct leader *leader = open_leader(&api, answers, 1);
    leader_tick(leader);
    assert_int_equal(http_in_flight(api.http), 1);
    leader_close(leader);
    leader_close(NULL);
    assert_int_equal(http_in_flight(api.http), 0);
    api_close(&api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_renews_and_releases_a_lease),
        cmocka_unit_test(a_conflict_leaves_it_to_the_other),
        cmocka_unit_test(failures_are_kept_for_people),
        cmocka_unit_test(each_trouble_is_news_once),
        cmocka_unit_test(a_namespace_that_is_not_there_is_told_once),
        cmocka_unit_test(closing_cancels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
