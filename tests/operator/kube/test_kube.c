/* The API client over real sockets: what is sent, what answers mean, and what a request does
 * without credentials. test_kube_retry.c has what is tried again. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/api.h"

#include <string.h>

#define PODS "/api/v1/namespaces/n/pods"

static const struct kube_call get_pods = {.method = "GET", .path = PODS "?limit=5"};

/* ---- what is sent ---- */

static void a_request_says_who_and_what(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 1, &get_pods, &result);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_string_equal(result.answer, "{\"kind\":\"Pod\"}");
    assert_true(api_request_has(&api, 0, "GET " PODS "?limit=5 HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 0, "\r\nAuthorization: Bearer first\r\n"));
    assert_true(api_request_has(&api, 0, "\r\nUser-Agent: shoal-test/1\r\n"));
    assert_false(api_request_has(&api, 0, "Content-Type"));
    assert_int_equal(kube_requests_sent(api.kube), 1);
    api_end(&api, &result);
}

static void bodies_are_json(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    struct json *body = json_texts_of("a", "b", NULL);
    struct api api;
    struct api_result result;
    api_ask(&api, answers, 1, &(struct kube_call){.method = "POST", .path = PODS, .body = body},
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
    api_end(&api, &result);
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
        {API_THERE, ERR_EXISTS, "p is there (409 AlreadyExists)"},
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
        api_ask(&api, &rows[i].answer, 1, &get_pods, &result);
        assert_int_equal(result.err.code, rows[i].code);
        assert_non_null(strstr(result.err.msg, rows[i].text));
        assert_null(result.answer);
        assert_int_equal(kube_requests_sent(api.kube), 1);
        assert_int_equal(kube_requests_failed(api.kube), 0); /* it was answered */
        assert_int_equal(kube_requests_forbidden(api.kube), rows[i].code == ERR_FORBIDDEN);
        api_end(&api, &result);
    }
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
    api_end(&api, &result);
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
    api_end(&api, &second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_who_and_what),
        cmocka_unit_test(bodies_are_json),
        cmocka_unit_test(refusals_are_told_at_once),
        cmocka_unit_test(no_credentials_is_told_by_done),
        cmocka_unit_test(requests_wait_for_the_plugin_and_not_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
