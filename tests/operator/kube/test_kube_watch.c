/* Streams of the API client over real sockets, and its credentials over TLS. */
#include "tests/support.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/operator/api.h"
#include "tests/pki.h"

#include <string.h>

#define WATCH_PATH "/api/v1/pods?watch=1"

/* What came of a stream. */
struct stream {
    struct api *api;
    struct kube_request *request;
    struct str lines; /* each with a newline */
    bool cancel;      /* at the first line */
    int64_t idle_timeout_ms;
    bool is_done;
    struct error err;
    int64_t asked_ms;
};

static void on_line(void *context, const char *line, size_t bytes)
{
    struct stream *stream = context;
    str_add_bytes(&stream->lines, line, bytes);
    str_add(&stream->lines, "\n");
    if (!stream->cancel)
        return;
    kube_cancel(stream->api->kube, stream->request);
    stream->is_done = true;
}

static void on_end(void *context, const struct error *err)
{
    struct stream *stream = context;
    assert_false(stream->is_done);
    stream->is_done = true;
    stream->err = *err;
    stream->asked_ms = kube_asked_ms(stream->api->kube);
}

static void watch(struct api *api, struct stream *stream)
{
    bool cancel = stream->cancel;
    int64_t idle_ms = stream->idle_timeout_ms ? stream->idle_timeout_ms : SUPPORT_PATIENCE_MS;
    *stream = (struct stream){.api = api, .cancel = cancel};
    str_init(&stream->lines, 1000);
    struct kube_stream what = {.path = WATCH_PATH,
                               .idle_timeout_ms = idle_ms,
                               .line = on_line,
                               .done = on_end,
                               .context = stream};
    stream->request = kube_watch(api->kube, &what, api->now_ms);
    api_wait(api, &stream->is_done);
}

static void lines_come_as_they_are(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = FAKE_CHUNKED "4\r\n{}\n{\r\n2\r\n}\n\r\n0\r\n\r\n"}};
    struct api api;
    struct stream stream = {0};
    api_open(&api, answers, 1, NULL);
    watch(&api, &stream);
    assert_int_equal(stream.err.code, ERR_NONE);
    assert_string_equal(str_text(&stream.lines), "{}\n{}\n");
    assert_true(api_request_has(&api, 0, "GET " WATCH_PATH " HTTP/1.1\r\n"));
    assert_true(api_request_has(&api, 0, "Bearer first\r\n"));
    str_free(&stream.lines);
    api_close(&api);
}

static void ends_of_streams_are_told_and_not_tried_again(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        enum error_code code;
        const char *text;
        int64_t asked_ms;
    } rows[] = {
        {{.bytes = FAKE_CHUNKED "3\r\n{}\n\r\n", .then = FAKE_CLOSE}, ERR_IO, "/api/v1/pods", 0},
        {{.bytes = FAKE_CHUNKED "0\r\n\r\n"}, ERR_NONE, "", 0},
        {API_STATUS("410 Gone", "Expired", "too old"), ERR_GONE, "too old (410 Expired)", 0},
        {API_STATUS("404 Not Found", "NotFound", "no such kind"), ERR_NOT_FOUND, "no such kind", 0},
        {API_STATUS("403 Forbidden", "Forbidden", "may not watch"), ERR_FORBIDDEN, "may not watch",
         0},
        {API_STATUS("500 Error", "InternalError", "etcd is away"), ERR_IO, "etcd is away", 0},
        {API_STATUS("429 Too Many Requests", "TooManyRequests", "later"), ERR_IO, "later", 0},
        {API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""), ERR_IO, "429", 7000},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct api api;
        struct stream stream = {0};
        api_open(&api, &rows[i].answer, 1, NULL);
        watch(&api, &stream);
        assert_int_equal(stream.err.code, rows[i].code);
        assert_non_null(strstr(stream.err.msg, rows[i].text));
        assert_int_equal(stream.asked_ms, rows[i].asked_ms);
        assert_int_equal(api.now_ms, API_NOW_MS);
        assert_int_equal(kube_requests_sent(api.kube), 1);
        str_free(&stream.lines);
        api_close(&api);
    }
}

/* Whether what came before the silence came in time, as it does if that is long enough. */
static bool half_open_stream_ends(int64_t idle_ms)
{
    static const struct fake_answer answers[] = {
        {.bytes = FAKE_CHUNKED "6\r\n{}\n{}\n\r\n4\r\n{\"a\"", .then = FAKE_HOLD}};
    struct api api;
    struct stream stream = {.idle_timeout_ms = idle_ms};
    api_open(&api, answers, 1, NULL);
    int64_t begin_ms = clock_monotonic_ms();
    watch(&api, &stream);
    assert_true(clock_monotonic_ms() - begin_ms >= idle_ms);
    assert_int_equal(stream.err.code, ERR_TIMEOUT);
    assert_non_null(strstr(stream.err.msg, "/api/v1/pods"));
    bool is_kept = strcmp(str_text(&stream.lines), "{}\n{}\n") == 0;
    assert_int_equal(http_in_flight(api.http), 0);
    str_free(&stream.lines);
    api_close(&api);
    return is_kept;
}

/* The server is gone, and nobody closed the connection: what came before is kept, and the watch may
 * go on from there. */
static void a_half_open_stream_ends_after_its_idle_time(void **state)
{
    (void)state;
    int64_t idle_ms = 150; /* for a busy machine it may be too short */
    while (!half_open_stream_ends(idle_ms))
        idle_ms = support_longer_ms(idle_ms);
}

static void a_refused_token_is_renewed_for_the_next_stream(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_STATUS("401 Unauthorized", "Unauthorized", "who are you"),
        {.bytes = FAKE_CHUNKED "0\r\n\r\n"}};
    struct api api;
    struct stream stream = {0};
    api_open(&api, answers, 2, NULL);
    api_write_file(&api, "token", "second");
    watch(&api, &stream);
    assert_int_equal(stream.err.code, ERR_FORBIDDEN);
    str_free(&stream.lines);
    watch(&api, &stream);
    assert_int_equal(stream.err.code, ERR_NONE);
    assert_true(api_request_has(&api, 1, "Bearer second\r\n"));
    str_free(&stream.lines);
    api_close(&api);
}

static void a_line_may_cancel_its_stream(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = FAKE_CHUNKED "6\r\n{}\n{}\n\r\n", .then = FAKE_HOLD}};
    struct api api;
    struct stream stream = {.cancel = true};
    api_open(&api, answers, 1, NULL);
    watch(&api, &stream);
    assert_string_equal(str_text(&stream.lines), "{}\n");
    str_free(&stream.lines);
    api_close(&api);
}

/* ---- TLS ---- */

static void write_pair(const struct api *api, const struct pki_pair *pair)
{
    api_write_file(api, "me.crt", pair->certificate);
    api_write_file(api, "me.key", pair->key);
}

static void client_certificates_are_shown_and_renewed(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {API_ANSWER("200 OK", "", "{}")};
    const int64_t day_ms = 24 * 3600 * 1000;
    struct pki_pair authority, host, before, after;
    /* libcurl asks the machine's clock */
    int64_t from_ms = API_NOW_MS - 10 * 365 * day_ms, until_ms = API_NOW_MS + 10 * 365 * day_ms;
    pki_make("authority", NULL, from_ms, until_ms, &authority);
    pki_make("api", &authority, from_ms, until_ms, &host);
    pki_make("before", &authority, from_ms, until_ms, &before);
    pki_make("after", &authority, from_ms, until_ms, &after);
    struct fake_tls tls = {
        .certificate = host.certificate, .key = host.key, .client_ca = authority.certificate};

    struct api api;
    struct api_result result;
    api_prepare(&api, answers, 1, &tls);
    api_write_file(&api, "ca.crt", authority.certificate);
    write_pair(&api, &before);
    api_connect(&api, "{client-certificate: me.crt, client-key: me.key}");
    const struct kube_call call = {.method = "GET", .path = "/x"};
    api_send(&api, &call, &result);
    api_wait(&api, &result.is_done);
    assert_ok(result.err.code, &result.err);
    assert_true(api_request_has(&api, 0, "client=before "));
    assert_false(api_request_has(&api, 0, "Authorization"));
    api_forget(&result);

    write_pair(&api, &after);
    api.now_ms += 60 * 1000;
    api_send(&api, &call, &result);
    api_wait(&api, &result.is_done);
    assert_ok(result.err.code, &result.err);
    assert_true(api_request_has(&api, 1, "client=after "));
    api_forget(&result);
    api_close(&api);
    pki_free(&authority);
    pki_free(&host);
    pki_free(&before);
    pki_free(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_as_they_are),
        cmocka_unit_test(ends_of_streams_are_told_and_not_tried_again),
        cmocka_unit_test(a_half_open_stream_ends_after_its_idle_time),
        cmocka_unit_test(a_refused_token_is_renewed_for_the_next_stream),
        cmocka_unit_test(a_line_may_cancel_its_stream),
        cmocka_unit_test(client_certificates_are_shown_and_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
