/* Requests of the API client that do not run their course: the guard is against them, or their
 * owner lets them go. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/api.h"

#include <string.h>

#define PODS "/api/v1/namespaces/n/pods"

static const struct kube_call get_pods = {.method = "GET", .path = PODS};

/* ---- the guard ---- */

static bool may_write(void *context)
{
    return *(const bool *)context;
}

static void nothing_is_written_against_the_guard(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_GOOD};
    static const struct {
        struct kube_call call;
        enum error_code code;
    } rows[] = {
        {{.method = "GET", .path = PODS}, ERR_NONE},
        {{.method = "PUT", .path = PODS, .unguarded = true}, ERR_NONE},
        {{.method = "POST", .path = PODS}, ERR_CANCELLED},
        {{.method = "DELETE", .path = PODS, .once = true}, ERR_CANCELLED},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct api api;
        struct api_result result;
        bool leads = false;
        api_open(&api, answers, 1, NULL);
        kube_guard(api.kube, may_write, &leads);
        api_send(&api, &rows[i].call, &result);
        assert_false(result.is_done);
        api_wait(&api, &result.is_done);
        assert_int_equal(result.err.code, rows[i].code);
        assert_int_equal(fake_server_request_count(api.server), rows[i].code == ERR_NONE);
        api_forget(&result);
        api_close(&api);
    }
}

static void another_try_asks_the_guard_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY, API_GOOD};
    struct api api;
    struct api_result result;
    bool leads = true;
    api_open(&api, answers, 2, NULL);
    kube_guard(api.kube, may_write, &leads);
    api_send(&api, &(struct kube_call){.method = "POST", .path = PODS}, &result);
    api_wait_answers(&api);
    leads = false;
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_CANCELLED);
    assert_non_null(
        strstr(result.err.msg, "POST " PODS ": not sent: this operator does not lead any more"));
    assert_int_equal(fake_server_request_count(api.server), 1);
    api_forget(&result);
    api_close(&api);
}

/* ---- letting go ---- */

static void a_cancelled_request_is_silent(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_BUSY, {.bytes = "HTTP/1.1 200 OK\r\n", .then = FAKE_HOLD}, API_GOOD};
    struct api api;
    struct api_result backing_off, in_flight, result;
    int64_t due_ms;
    api_open(&api, answers, 3, NULL);
    struct kube_request *r = api_send(&api, &get_pods, &backing_off);
    api_wait_answers(&api);
    kube_cancel(api.kube, r); /* failed, and not yet decided about */
    kube_tick(api.kube, api.now_ms, &due_ms);
    assert_int_equal(due_ms, INT64_MAX);
    r = api_send(&api, &get_pods, &in_flight);
    api_wait_requests(&api, 2);
    kube_cancel(api.kube, r);
    kube_cancel(api.kube, NULL);
    api_send(&api, &get_pods, &result);
    api_wait(&api, &result.is_done);
    assert_int_equal(result.err.code, ERR_NONE);
    assert_false(backing_off.is_done || in_flight.is_done);
    api_forget(&result);
    api_close(&api);
}

static void closing_lets_go_of_all(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_BUSY, {.bytes = "HTTP/1.1 200 OK\r\n", .then = FAKE_HOLD}};
    struct api api;
    struct api_result backing_off, in_flight;
    int64_t due_ms;
    api_open(&api, answers, 2, NULL);
    api_send(&api, &get_pods, &backing_off);
    api_wait_answers(&api);
    kube_tick(api.kube, api.now_ms, &due_ms);
    api_send(&api, &get_pods, &in_flight);
    api_close(&api);
    assert_false(backing_off.is_done || in_flight.is_done);
}

/* Two requests fail together, and the one that is told first cancels the other. */
struct couple {
    struct kube *kube;
    struct kube_request *requests[2];
    int told;
    bool is_done;
};

static void cancel_the_other(void *context, const struct json *answer, const struct error *err)
{
    struct couple *couple = context;
    assert_null(answer);
    assert_int_equal(err->code, ERR_IO);
    couple->told++;
    couple->is_done = true;
    for (int i = 0; i < 2; i++)
        kube_cancel(couple->kube, couple->requests[i]);
}

static void first_told(void *context, const struct json *answer, const struct error *err)
{
    ((struct couple *)context)->requests[0] = NULL;
    cancel_the_other(context, answer, err);
}

static void second_told(void *context, const struct json *answer, const struct error *err)
{
    ((struct couple *)context)->requests[1] = NULL;
    cancel_the_other(context, answer, err);
}

static void one_may_cancel_another_that_failed_with_it(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_BUSY};
    struct api api;
    api_open(&api, answers, 1, NULL);
    struct couple couple = {.kube = api.kube};
    struct kube_call call = get_pods;
    call.once = true;
    call.context = &couple;
    call.done = first_told;
    couple.requests[0] = kube_send(api.kube, &call, api.now_ms);
    call.done = second_told;
    couple.requests[1] = kube_send(api.kube, &call, api.now_ms);
    api_wait_answers(&api);
    api_wait(&api, &couple.is_done);
    assert_int_equal(couple.told, 1);
    api_close(&api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_written_against_the_guard),
        cmocka_unit_test(another_try_asks_the_guard_again),
        cmocka_unit_test(a_cancelled_request_is_silent),
        cmocka_unit_test(closing_lets_go_of_all),
        cmocka_unit_test(one_may_cancel_another_that_failed_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
