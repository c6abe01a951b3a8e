/* Which tries of the API client are repeated, when, and when it gives up. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/api.h"

#include <string.h>

#define PODS "/api/v1/namespaces/n/pods"
#define UNAUTHORIZED_TEXT                                                                          \
    API_TEXT("401 Unauthorized", "", "{\"reason\":\"Unauthorized\",\"message\":\"who are you\"}")
#define UNAUTHORIZED                                                                               \
    {                                                                                              \
        .bytes = UNAUTHORIZED_TEXT, .then = FAKE_CLOSE                                             \
    }

static const struct kube_call get_pods = {.method = "GET", .path = PODS "?limit=5"};

static void a_rotated_token_is_read_after_a_401(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {UNAUTHORIZED, API_GOOD};
    struct api api;
    struct api_result result;
    api_open(&api, answers, 2, NULL);
    api_write_file(&api, "token", "second");
    api_send(&api, &get_pods, &result);
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_true(api_request_has(&api, 0, "Bearer first\r\n"));
    assert_true(api_request_has(&api, 1, "Bearer second\r\n"));
    assert_int_equal(api.now_ms, API_NOW_MS); /* at once */
    assert_int_equal(kube_requests_sent(api.kube), 2);
    assert_int_equal(kube_requests_failed(api.kube), 1);
    api_end(&api, &result);
}

static void a_second_401_is_the_answer(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {UNAUTHORIZED};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 1, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(result.err.msg, "GET " PODS ": who are you (401 Unauthorized)"));
    assert_int_equal(kube_requests_sent(api.kube), 2);
    api_end(&api, &result);
}

static void retry_after_is_honoured(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""),
        API_ANSWER("503 Unavailable", "Retry-After: 3\r\n", ""), API_GOOD};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 3, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_int_equal(api.wait_count, 2);
    assert_in_range(api.waits_ms[0], 7001, 7100);
    assert_in_range(api.waits_ms[1], 3001, 3200);
    api_end(&api, &result);
}

/* Who asks again by itself is told at once, and for how long the server wants not to be asked. */
static void who_asks_once_is_told_what_the_server_asks(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        int64_t asked_ms;
    } rows[] = {
        {API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""), 7000},
        {API_ANSWER("503 Unavailable", "Retry-After: 3\r\n", ""), 3000},
        {API_ANSWER("429 Too Many Requests", "Retry-After: 3600\r\n", ""), 60000},
        {API_ANSWER("429 Too Many Requests", "", ""), 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct kube_call call = get_pods;
        call.once = true;
        struct api api;
        struct api_result result;
        api_ask(&api, &rows[i].answer, 1, &call, &result);
        assert_int_equal(result.err.code, ERR_IO);
        assert_int_equal(result.asked_ms, rows[i].asked_ms);
        assert_int_equal(kube_asked_ms(api.kube), 0);
        assert_int_equal(api.now_ms, API_NOW_MS);
        assert_int_equal(kube_requests_sent(api.kube), 1);
        api_end(&api, &result);
    }
}

/* A wait that the server asked for is over with the next try, which says nothing of one. */
static void a_wait_does_not_outlive_its_try(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""), UNAUTHORIZED, UNAUTHORIZED};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, array_length(answers), &get_pods, &result);
    assert_int_equal(result.err.code, ERR_FORBIDDEN);
    assert_in_range(api.now_ms - API_NOW_MS, 7001, 7100);
    assert_int_equal(result.asked_ms, 0);
    api_end(&api, &result);
}

static void errors_back_off_until_it_gives_up(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 1, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_IO);
    assert_non_null(strstr(result.err.msg, "etcd is away (500 InternalError); gave up after "));
    int64_t most_ms = 100;
    for (size_t i = 0; i < api.wait_count; i++) {
        assert_in_range(api.waits_ms[i], 1, most_ms);
        most_ms = most_ms * 2 < 2000 ? most_ms * 2 : 2000;
    }
    /* 30 s of at most 2 s each, and some beyond a second: it is jittered, and it does double */
    assert_in_range(api.now_ms - API_NOW_MS, 28000, 30000);
    assert_in_range(api.wait_count, 16, API_WAITS_MAX - 1);
    assert_int_equal(kube_requests_sent(api.kube), api.wait_count + 1);
    api_end(&api, &result);
}

static void a_cut_connection_is_tried_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", .then = FAKE_CLOSE},
        {.bytes = "HTTP/1.1 200", .then = FAKE_CLOSE},
        API_GOOD};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 3, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_int_equal(kube_requests_sent(api.kube), 3);
    api_end(&api, &result);
}

/* What is there after a try that nobody answered is what that try made; after one that was turned
 * away it is another's. */
static void a_create_whose_answer_was_lost_went_well(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer first, second;
        enum error_code code;
        bool exact;
    } rows[] = {
        {{.bytes = "HTTP/1.1 201", .then = FAKE_CLOSE}, API_THERE, ERR_NONE, false},
        {{.bytes = "", .then = FAKE_CLOSE}, API_THERE, ERR_NONE, false},
        {API_BUSY, API_THERE, ERR_NONE, false},
        {API_STATUS("504 Gateway Timeout", "Timeout", "slow"), API_THERE, ERR_NONE, false},
        {API_BUSY, API_STATUS("409 Conflict", "Conflict", "p was modified"), ERR_CONFLICT, false},
        {API_STATUS("429 Too Many Requests", "TooManyRequests", "later"), API_THERE, ERR_EXISTS,
         false},
        {UNAUTHORIZED, API_THERE, ERR_EXISTS, false},
        {API_BUSY, API_THERE, ERR_IO, true},
        {API_STATUS("429 Too Many Requests", "TooManyRequests", "later"), API_THERE, ERR_EXISTS,
         true},
    };
    struct json *body = json_new_object();
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct fake_answer answers[] = {rows[i].first, rows[i].second};
        const struct kube_call call = {
            .method = "POST", .path = PODS, .body = body, .exact = rows[i].exact};
        struct api api;
        struct api_result result;
        api_ask(&api, answers, 2, &call, &result);
        if (result.err.code != rows[i].code)
            fail_msg("row %zu: %s", i, result.err.msg);
        assert_null(result.answer);
        assert_int_equal(kube_requests_sent(api.kube), 2);
        api_end(&api, &result);
    }
    json_free(body);
}

static void nobody_there_is_an_error_with_the_path(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct api api;
    struct api_result result;
    api_open(&api, answers, 1, "{}");
    api_write_file(&api, "config",
                   "current-context: x\n"
                   "contexts: [{name: x, context: {cluster: c}}]\n"
                   "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n");
    struct kubeconfig *config;
    struct error err;
    auto_free char *path = xasprintf("%s/config", api.directory);
    assert_ok(
        kubeconfig_open(&config, &(struct kubeconfig_options){.path = path}, API_NOW_MS, &err),
        &err);
    struct kube_options options = {.timeout_ms = SUPPORT_PATIENCE_MS,
                                   .give_up_ms = 1000,
                                   .backoff_first_ms = 100,
                                   .backoff_max_ms = 100,
                                   .seed = 1};
    kube_close(api.kube);
    api.kube = kube_open(api.http, config, &options);
    api_send(&api, &get_pods, &result);
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_IO);
    assert_non_null(strstr(result.err.msg, "GET http://127.0.0.1:1" PODS "?limit=5: "));
    assert_non_null(strstr(result.err.msg, "gave up after"));
    kube_close(api.kube);
    api.kube = NULL;
    kubeconfig_close(config);
    api_end(&api, &result);
}

static void once_means_once(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY, UNAUTHORIZED, API_GOOD};
    struct kube_call call = get_pods;
    call.once = true;
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 3, &call, &result);
    assert_int_equal(result.err.code, ERR_IO);
    assert_null(strstr(result.err.msg, "gave up"));
    api_write_file(&api, "token", "second");
    api_send(&api, &call, &result);
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_FORBIDDEN);
    api_send(&api, &call, &result); /* but the next one has learnt from it */
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_true(api_request_has(&api, 2, "Bearer second\r\n"));
    api_end(&api, &result);
}

/* A 401 for a token that was replaced meanwhile says nothing about the new one. */
static void a_late_401_does_not_renew_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = UNAUTHORIZED_TEXT, .pause = true, .then = FAKE_CLOSE},
        UNAUTHORIZED,
        API_GOOD,
        API_GOOD};
    struct api api;
    struct api_result late, other;
    api_open(&api, answers, 4, NULL);
    api_send(&api, &get_pods, &late);
    api_wait_requests(&api, 1);
    api_write_file(&api, "token", "second");
    api_send(&api, &get_pods, &other);
    api_wait(&api, &other.is_done);
    assert_true(api_request_has(&api, 2, "Bearer second\r\n"));
    api_write_file(&api, "token", "third");
    fake_server_go(api.server);
    api_wait(&api, &late.is_done);
    assert_int_equal(late.err.code, ERR_NONE);
    assert_true(api_request_has(&api, 3, "Bearer second\r\n"));
    api_forget(&late);
    api_end(&api, &other);
}

static void a_clock_that_is_set_back_delays_nothing(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY, API_GOOD};
    struct api api;
    struct api_result result;
    int64_t due_ms = 0;
    api_open(&api, answers, 2, NULL);
    api_send(&api, &get_pods, &result);
    api_wait_answers(&api);
    kube_tick(api.kube, api.now_ms, &due_ms);
    int64_t wait_ms = due_ms - api.now_ms;
    api.now_ms -= 3600 * 1000;
    kube_tick(api.kube, api.now_ms, &due_ms);
    assert_int_equal(due_ms - api.now_ms, wait_ms);
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_NONE);
    api_end(&api, &result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rotated_token_is_read_after_a_401),
        cmocka_unit_test(a_second_401_is_the_answer),
        cmocka_unit_test(retry_after_is_honoured),
        cmocka_unit_test(who_asks_once_is_told_what_the_server_asks),
        cmocka_unit_test(a_wait_does_not_outlive_its_try),
        cmocka_unit_test(errors_back_off_until_it_gives_up),
        cmocka_unit_test(a_cut_connection_is_tried_again),
        cmocka_unit_test(a_create_whose_answer_was_lost_went_well),
        cmocka_unit_test(nobody_there_is_an_error_with_the_path),
        cmocka_unit_test(once_means_once),
        cmocka_unit_test(a_late_401_does_not_renew_again),
        cmocka_unit_test(a_clock_that_is_set_back_delays_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
