/* A watch carried out, over real sockets: pages, a stream, its end, and what is no longer so. The
 * machine's decisions are test_watch.c's matter. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kube/watcher.h"
#include "tests/operator/api.h"

#include <stdio.h>
#include <string.h>

#define PATH "/api/v1/pods"
#define PAGE(version, token, name)                                                                 \
    API_ANSWER("200 OK", "",                                                                       \
               "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token          \
               "\"},\"items\":[{\"metadata\":{\"name\":\"" name "\"}}]}")
#define EVENT(type, name, version)                                                                 \
    "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name                            \
    "\",\"resourceVersion\":\"" version "\"}}}\n"
#define STREAM "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define EXPIRED                                                                                    \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n"

static int64_t test_now_ms;

static int64_t now_ms(void)
{
    return test_now_ms;
}

static const struct clocks test_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

struct fixture {
    struct api api;
    struct watcher *watcher;
    struct str heard;  /* "[ +a ] -b " */
    size_t put_behind; /* nothing is put before so many requests have arrived */
};

static void hear(struct fixture *f, const char *sign, const struct json *object)
{
    const struct json *name = json_get(json_get(object, "metadata"), "name");
    str_printf(&f->heard, "%s%s ", sign, json_as_text(name));
}

static void on_begin(void *context)
{
    str_add(&((struct fixture *)context)->heard, "[ ");
}

static void on_put(void *context, const struct json *object)
{
    struct fixture *f = context;
    support_wait_until(fake_server_request_count(f->api.server) >= f->put_behind);
    hear(context, "+", object);
}

static void on_remove(void *context, const struct json *object)
{
    hear(context, "-", object);
}

static void on_end(void *context)
{
    str_add(&((struct fixture *)context)->heard, "] ");
}

static void on_warn(void *context, const char *message)
{
    str_printf(&((struct fixture *)context)->heard, "(%s) ", message);
}

static void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count)
{
    test_now_ms = API_NOW_MS;
    f->put_behind = 0;
    api_open(&f->api, answers, count, NULL);
    str_init(&f->heard, 4096);
    const struct watch_options options = {.path = PATH,
                                          .selector = "",
                                          .page = 1,
                                          .timeout_s = 290,
                                          .backoff_first_ms = 100,
                                          .backoff_max_ms = 5000,
                                          .seed = 1,
                                          .begin_list = on_begin,
                                          .put = on_put,
                                          .remove = on_remove,
                                          .end_list = on_end,
                                          .warn = on_warn,
                                          .context = f};
    f->watcher = watcher_open(f->api.kube, &options, &test_clocks);
}

static void close_fixture(struct fixture *f)
{
    watcher_close(f->watcher);
    api_close(&f->api);
    str_free(&f->heard);
}

/* When nothing is in flight, time jumps. */
static void run_once(struct fixture *f)
{
    struct error err;
    int64_t due_ms, delay_ms = watcher_tick(f->watcher);
    if (http_in_flight(f->api.http) > 0)
        assert_ok(http_poll(f->api.http, NULL, 0, 10, &err), &err);
    else if (delay_ms < INT64_MAX)
        test_now_ms += delay_ms;
    kube_tick(f->api.kube, test_now_ms, &due_ms);
}

/* Goes on until so many requests were sent and this was heard. */
static void run_until(struct fixture *f, size_t requests, const char *heard)
{
    while (fake_server_request_count(f->api.server) < requests ||
           strcmp(str_text(&f->heard), heard) != 0) {
        run_once(f);
        if (strlen(str_text(&f->heard)) > strlen(heard))
            fail_msg("heard %s", str_text(&f->heard));
    }
}

static void pages_then_a_stream_then_the_next(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        PAGE("7", "more", "a"),
        PAGE("7", "", "b"),
        {.bytes = STREAM EVENT("ADDED", "c", "8") EVENT("DELETED", "a", "9"), .then = FAKE_CLOSE},
        {.bytes = STREAM EVENT("MODIFIED", "c", "10"), .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    assert_false(watch_is_synced(watcher_machine(f.watcher)));
    run_until(&f, 4, "[ +a +b ] +c -a +c ");
    assert_true(watch_is_synced(watcher_machine(f.watcher)));
    static const char *const parts[] = {"limit=1", "continue=more", "resourceVersion=7 ",
                                        "resourceVersion=9 "};
    for (size_t i = 0; i < array_length(parts); i++)
        if (!api_request_has(&f.api, i, parts[i]))
            fail_msg("request %zu has no %s", i, parts[i]);
    assert_true(api_request_has(&f.api, 2, "watch="));
    assert_true(watcher_tick(f.watcher) > 0); /* one request at a time */
    assert_int_equal(kube_requests_sent(f.api.kube), 4);
    close_fixture(&f); /* with the stream in flight */
}

/* It is failing from the answer on, and asks again when the server wants to be asked. */
static void it_waits_as_the_server_asks(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_ANSWER("429 Too Many Requests", "Retry-After: 7\r\n", ""),
        PAGE("7", "", "a"),
        API_ANSWER("429 Too Many Requests", "Retry-After: 20\r\n", ""),
        {.bytes = STREAM EVENT("ADDED", "b", "8"), .then = FAKE_HOLD},
    };
    struct fixture f;
    const struct error *err;
    open_fixture(&f, answers, array_length(answers));
    run_until(&f, 2, "[ +a ] ");
    assert_in_range(test_now_ms - API_NOW_MS, 7001, 7100);
    run_until(&f, 3, "[ +a ] ");
    while (!watch_failing_since(watcher_machine(f.watcher), &err))
        run_once(&f);
    int64_t refused_ms = watch_failing_since(watcher_machine(f.watcher), &err);
    assert_in_range(refused_ms - API_NOW_MS, 7001, 7100);
    run_until(&f, 4, "[ +a ] +b ");
    assert_in_range(test_now_ms - refused_ms, 20001, 20100);
    close_fixture(&f);
}

/* As an answer whose connection stays: what is sent next can leave on it at once. */
static char *kept(const char *body)
{
    return xasprintf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

/* The first item is held back until the request for the page behind it has arrived. */
static void the_next_page_is_on_its_way_while_one_is_read(void **state)
{
    (void)state;
    auto_free char *page =
        kept("{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"more\"},\"items\":["
             "{\"metadata\":{\"name\":\"a\"}}]}");
    const struct fake_answer answers[] = {
        {.bytes = page},
        PAGE("7", "", "b"),
        {.bytes = STREAM, .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    f.put_behind = 2;
    run_until(&f, 3, "[ +a +b ] ");
    assert_int_equal(kube_requests_sent(f.api.kube), 3);
    close_fixture(&f);
}

/* What was sent ahead is cancelled: its answer is no page of the list that begins anew. */
static void a_page_that_is_cut_short_is_not_followed(void **state)
{
    (void)state;
    auto_free char *page =
        kept("{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"more\"},\"items\":["
             "{\"metadata\":{\"name\":\"a\"}},{]}");
    const struct fake_answer answers[] = {
        {.bytes = page},
        {.bytes = "", .then = FAKE_HOLD},
        PAGE("9", "", "c"),
        {.bytes = STREAM, .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    f.put_behind = 2;
    run_until(&f, 4, "[ +a [ +c ] ");
    assert_true(api_request_has(&f.api, 1, "continue=more"));
    assert_false(api_request_has(&f.api, 2, "continue="));
    close_fixture(&f);
}

/* One event in one chunk. */
static size_t add_chunk(char *out, size_t size, const char *event)
{
    return (size_t)snprintf(out, size, "%zx\r\n%s\r\n", strlen(event), event);
}

/* Wherever the connection breaks: what was whole was taken once, and the next stream begins behind
 * it. */
static void a_stream_cut_at_any_byte_loses_nothing_and_repeats_nothing(void **state)
{
    (void)state;
    static const char *const events[] = {EVENT("ADDED", "b", "8"), EVENT("DELETED", "a", "9"),
                                         EVENT("MODIFIED", "b", "10")};
    enum { EVENTS = array_length(events), MAX_BYTES = 1024 };
    char text[MAX_BYTES] = FAKE_CHUNKED;
    size_t bytes = strlen(text), ends[EVENTS], starts[EVENTS];
    for (size_t i = 0; i < EVENTS; i++) {
        starts[i] = bytes;
        bytes += add_chunk(text + bytes, sizeof text - bytes, events[i]);
        ends[i] = bytes - strlen("\r\n"); /* of its line */
    }
    for (size_t cut = 1; cut < bytes; cut++) {
        size_t whole = 0;
        while (whole < EVENTS && ends[whole] <= cut)
            whole++;
        auto_free char *rest =
            xasprintf(FAKE_CHUNKED "%s", whole < EVENTS ? text + starts[whole] : "");
        const struct fake_answer answers[] = {
            PAGE("7", "", "a"),
            {.bytes = text, .count = cut, .then = FAKE_CLOSE},
            {.bytes = rest, .then = FAKE_HOLD},
        };
        auto_free char *from = xasprintf("resourceVersion=%zu ", 7 + whole);
        struct fixture f;
        open_fixture(&f, answers, array_length(answers));
        run_until(&f, 3, "[ +a ] +b -a +b ");
        if (!api_request_has(&f.api, 2, from))
            fail_msg("cut after %zu bytes: the next stream is not from %s", cut, from);
        close_fixture(&f);
    }
}

/* The stream that said so is given up by us; nothing of what follows on it is taken. */
static void what_is_too_old_is_listed_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        PAGE("7", "", "a"),
        {.bytes = STREAM EXPIRED EVENT("ADDED", "x", "8"), .then = FAKE_HOLD},
        PAGE("20", "", "b"),
        {.bytes = STREAM, .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    run_until(&f, 4, "[ +a ] [ +b ] ");
    assert_true(api_request_has(&f.api, 3, "resourceVersion=20 "));
    close_fixture(&f);
}

static void a_refused_list_is_asked_for_again(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        API_STATUS("403 Forbidden", "Forbidden", "may not list"),
        PAGE("7", "", "a"),
        {.bytes = STREAM, .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    run_until(&f, 3, "[ +a ] ");
    assert_true(test_now_ms > API_NOW_MS); /* after a rest */
    close_fixture(&f);
}

static void a_silent_stream_is_relisted_once(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        PAGE("7", "", "a"),
        {.bytes = STREAM, .then = FAKE_HOLD},
        PAGE("9", "", "b"),
        {.bytes = STREAM, .then = FAKE_HOLD},
    };
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    run_until(&f, 2, "[ +a ] ");
    test_now_ms += 60 * 1000;
    assert_true(watcher_relist_if_silent(f.watcher, test_now_ms - 1000));
    assert_int_equal(http_in_flight(f.api.http), 0);
    assert_false(watcher_relist_if_silent(f.watcher, test_now_ms - 1000)); /* it lists already */
    run_until(&f, 4, "[ +a ] [ +b ] ");
    close_fixture(&f);
}

static void closing_cancels_a_list(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = "", .then = FAKE_HOLD}};
    struct fixture f;
    open_fixture(&f, answers, 1);
    watcher_tick(f.watcher);
    assert_int_equal(http_in_flight(f.api.http), 1);
    close_fixture(&f);
    watcher_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_then_a_stream_then_the_next),
        cmocka_unit_test(it_waits_as_the_server_asks),
        cmocka_unit_test(the_next_page_is_on_its_way_while_one_is_read),
        cmocka_unit_test(a_page_that_is_cut_short_is_not_followed),
        cmocka_unit_test(a_stream_cut_at_any_byte_loses_nothing_and_repeats_nothing),
        cmocka_unit_test(what_is_too_old_is_listed_again),
        cmocka_unit_test(a_refused_list_is_asked_for_again),
        cmocka_unit_test(a_silent_stream_is_relisted_once),
        cmocka_unit_test(closing_cancels_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
