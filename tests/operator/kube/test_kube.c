/* The API client over real sockets: what is sent, what answers mean, and what is tried again. */
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

#define THERE API_STATUS("409 Conflict", "AlreadyExists", "p is there")

static const struct kube_call get_pods = {.method = "GET", .path = PODS "?limit=5"};

/* Sends the call to a server with these answers and waits. The caller closes and forgets. */
static void ask(struct api *api, const struct fake_answer *answers, size_t count,
                const struct kube_call *call, struct api_result *result)
{
    api_open(api, answers, count, NULL);
    api_send(api, call, result);
    api_wait(api, &result->is_done);
}

static void end(struct api *api, struct api_result *result)
{
    api_forget(result);
    api_close(api);
}

/* ---- what is sent ---- */

static void a_request_says_who_and_what(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct api api;
    struct api_result result;
    ask(&api, answers, 1, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_string_equal(result.answer, "{\"kind\":\"Pod\"}");
    assert_true(api_request_has(&api, 0, "GET " PODS "?limit=5 HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 0, "\r\nAuthorization: Bearer first\r\n"));
    assert_true(api_request_has(&api, 0, "\r\nUser-Agent: shoal-test/1\r\n"));
    assert_false(api_request_has(&api, 0, "Content-Type"));
    assert_int_equal(kube_requests_sent(api.kube), 1);
    end(&api, &result);
}

static void bodies_are_json(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct json *body = json_texts_of("a", "b", NULL);
    struct api api;
    struct api_result result;
    ask(&api, answers, 1, &(struct kube_call){.method = "POST", .path = PODS, .body = body},
        &result);
    assert_true(api_request_has(&api, 0, "POST " PODS " HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 0, "\r\nContent-Type: application/json\r\n"));
    assert_true(api_request_has(&api, 0, "\r\n\r\n{\"a\":\"b\"}"));
    api_forget(&result);
    api_send(&api,
             &(struct kube_call){.method = "PATCH",
                                 .path = PODS "/p",
                                 .body = body,
                                 .content_type = "application/merge-patch+json"},
             &result);
    api_wait(&api, &result.is_done);
    assert_true(api_request_has(&api, 1, "\r\nContent-Type: application/merge-patch+json\r\n"));
    json_free(body);
    end(&api, &result);
}

/* ---- answers that are final ---- */

static void refusals_are_told_at_once(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        enum error_code code;
        const char *text;
    } rows[] = {
        {API_STATUS("403 Forbidden", "Forbidden", "pods is forbidden: User u cannot list"),
         ERR_FORBIDDEN, "GET " PODS ": pods is forbidden: User u cannot list (403 Forbidden)"},
        {API_STATUS("404 Not Found", "NotFound", "no p"), ERR_NOT_FOUND, "no p (404 NotFound)"},
        {THERE, ERR_EXISTS, "p is there (409 AlreadyExists)"},
        {API_STATUS("409 Conflict", "Conflict", "p was modified"), ERR_CONFLICT,
         "p was modified (409 Conflict)"},
        {API_STATUS("410 Gone", "Expired", "too old"), ERR_GONE, "too old (410 Expired)"},
        {API_STATUS("422 Unprocessable Entity", "Invalid", "spec is bad"), ERR_INPUT,
         "spec is bad (422 Invalid)"},
        {API_ANSWER("200 OK", "", "<html>"), ERR_INPUT, "is no JSON object: <html>"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct api api;
        struct api_result result;
        ask(&api, &rows[i].answer, 1, &get_pods, &result);
        assert_int_equal(result.err.code, rows[i].code);
        assert_non_null(strstr(result.err.msg, rows[i].text));
        assert_null(result.answer);
        assert_int_equal(kube_requests_sent(api.kube), 1);
        assert_int_equal(kube_requests_failed(api.kube), 0); /* it was answered */
        assert_int_equal(kube_requests_forbidden(api.kube), rows[i].code == ERR_FORBIDDEN);
        end(&api, &result);
    }
}

/* ---- trying again ---- */

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
    end(&api, &result);
}

static void a_second_401_is_the_answer(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {UNAUTHORIZED};
    struct api api;
    struct api_result result;
    ask(&api, answers, 1, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(result.err.msg, "GET " PODS ": who are you (401 Unauthorized)"));
    assert_int_equal(kube_requests_sent(api.kube), 2);
    end(&api, &result);
}

static void retry_after_is_honoured(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""),
        API_ANSWER("503 Unavailable", "Retry-After: 3\r\n", ""), API_GOOD};
    struct api api;
    struct api_result result;
    ask(&api, answers, 3, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_int_equal(api.wait_count, 2);
    assert_in_range(api.waits_ms[0], 7001, 7100);
    assert_in_range(api.waits_ms[1], 3001, 3200);
    end(&api, &result);
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
        ask(&api, &rows[i].answer, 1, &call, &result);
        assert_int_equal(result.err.code, ERR_IO);
        assert_int_equal(result.asked_ms, rows[i].asked_ms);
        assert_int_equal(kube_asked_ms(api.kube), 0);
        assert_int_equal(api.now_ms, API_NOW_MS);
        assert_int_equal(kube_requests_sent(api.kube), 1);
        end(&api, &result);
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
    ask(&api, answers, array_length(answers), &get_pods, &result);
    assert_int_equal(result.err.code, ERR_FORBIDDEN);
    assert_in_range(api.now_ms - API_NOW_MS, 7001, 7100);
    assert_int_equal(result.asked_ms, 0);
    end(&api, &result);
}

static void errors_back_off_until_it_gives_up(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY};
    struct api api;
    struct api_result result;
    ask(&api, answers, 1, &get_pods, &result);
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
    end(&api, &result);
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
    ask(&api, answers, 3, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_int_equal(kube_requests_sent(api.kube), 3);
    end(&api, &result);
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
        {{.bytes = "HTTP/1.1 201", .then = FAKE_CLOSE}, THERE, ERR_NONE, false},
        {{.bytes = "", .then = FAKE_CLOSE}, THERE, ERR_NONE, false},
        {API_BUSY, THERE, ERR_NONE, false},
        {API_STATUS("504 Gateway Timeout", "Timeout", "slow"), THERE, ERR_NONE, false},
        {API_BUSY, API_STATUS("409 Conflict", "Conflict", "p was modified"), ERR_CONFLICT, false},
        {API_STATUS("429 Too Many Requests", "TooManyRequests", "later"), THERE, ERR_EXISTS, false},
        {UNAUTHORIZED, THERE, ERR_EXISTS, false},
        {API_BUSY, THERE, ERR_IO, true},
        {API_STATUS("429 Too Many Requests", "TooManyRequests", "later"), THERE, ERR_EXISTS, true},
    };
    struct json *body = json_new_object();
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct fake_answer answers[] = {rows[i].first, rows[i].second};
        const struct kube_call call = {
            .method = "POST", .path = PODS, .body = body, .exact = rows[i].exact};
        struct api api;
        struct api_result result;
        ask(&api, answers, 2, &call, &result);
        if (result.err.code != rows[i].code)
            fail_msg("row %zu: %s", i, result.err.msg);
        assert_null(result.answer);
        assert_int_equal(kube_requests_sent(api.kube), 2);
        end(&api, &result);
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
    end(&api, &result);
}

static void once_means_once(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY, UNAUTHORIZED, API_GOOD};
    struct kube_call call = get_pods;
    call.once = true;
    struct api api;
    struct api_result result;
    ask(&api, answers, 3, &call, &result);
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
    end(&api, &result);
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
    end(&api, &other);
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
    end(&api, &result);
}

/* ---- credentials that cannot be had ---- */

static void no_credentials_is_told_by_done(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct kube_call call = get_pods;
    call.once = true;
    struct api api;
    struct api_result result;
    api_open(&api, answers, 1,
             "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere/plugin}}");
    api_send(&api, &call, &result);
    assert_false(result.is_done); /* not from within */
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(result.err.msg, "user \"u\": exec: /nowhere/plugin"));
    assert_int_equal(kube_requests_sent(api.kube), 0);
    end(&api, &result);
}

static void requests_wait_for_the_plugin_and_not_the_loop(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct api api;
    struct api_result first, second, cancelled;
    api_prepare(&api, answers, 1, NULL);
    api_write_file(&api, "plugin",
                   "until [ -e \"$1/go\" ]; do sleep 0.01; done\n"
                   "echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"given\"},"
                   "\"apiVersion\":\"client.authentication.k8s.io/v1\"}'\n");
    auto_free char *user =
        xasprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, "
                  "args: [%s/plugin, %s]}}",
                  api.directory, api.directory);
    api_connect(&api, user);
    api_send(&api, &get_pods, &first);
    api_send(&api, &get_pods, &second);
    kube_cancel(api.kube, api_send(&api, &get_pods, &cancelled));
    int64_t due_ms;
    kube_tick(api.kube, api.now_ms, &due_ms); /* returns, though the plugin goes on */
    assert_int_equal(kube_requests_sent(api.kube), 0);
    assert_in_range(due_ms, api.now_ms, api.now_ms + 20000);
    api_write_file(&api, "go", "");
    api_wait(&api, &first.is_done);
    api_wait(&api, &second.is_done);
    assert_ok(first.err.code, &first.err);
    assert_ok(second.err.code, &second.err);
    assert_true(api_request_has(&api, 0, "Bearer given\r\n"));
    assert_false(cancelled.is_done);
    api_forget(&first);
    end(&api, &second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_who_and_what),
        cmocka_unit_test(bodies_are_json),
        cmocka_unit_test(refusals_are_told_at_once),
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
        cmocka_unit_test(no_credentials_is_told_by_done),
        cmocka_unit_test(requests_wait_for_the_plugin_and_not_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
