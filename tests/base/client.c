#include "tests/base/client.h"
#include "tests/support.h"

#include "base/mem.h"

#include <string.h>

enum { BODY_BYTES = 1 << 20 };

struct http *client_http_with(const struct http_options *options)
{
    struct http *http;
    struct error err;
    assert_ok(http_open(&http, options, &err), &err);
    return http;
}

struct http *client_http(void)
{
    return client_http_with(&(struct http_options){.max_body_bytes = BODY_BYTES,
                                                   .max_line_bytes = BODY_BYTES,
                                                   .max_in_flight = 16,
                                                   .connect_timeout_ms = SUPPORT_PATIENCE_MS});
}

char *client_url(const char *scheme, int port, const char *path)
{
    return xasprintf("%s://127.0.0.1:%d%s", scheme, port, path);
}

void client_line(void *context, const char *line, size_t bytes)
{
    struct client *c = context;
    c->line_count++;
    str_add_bytes(&c->lines, line, bytes);
    str_add(&c->lines, "|");
    if (c->line_cancels)
        http_cancel(c->http, take(*c->line_cancels));
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct client *c = context;
    c->done++;
    c->request = NULL;
    c->answer = *answer;
    assert_int_equal(strlen(answer->body), answer->body_bytes);
    str_add(&c->body, answer->body);
    c->answer.body = NULL;
    if (c->done_cancels)
        http_cancel(c->http, take(*c->done_cancels));
    if (c->then)
        client_send(c->then, c->http, &c->then_call);
}

void client_send(struct client *c, struct http *http, const struct http_call *call)
{
    struct http_call with = *call;
    c->http = http;
    str_init(&c->lines, 2 * BODY_BYTES);
    str_init(&c->body, 2 * BODY_BYTES);
    with.done = on_done;
    with.context = c;
    c->request = http_send(http, &with);
}

void client_get(struct client *c, struct http *http, int port, const char *path)
{
    auto_free char *url = client_url("http", port, path);
    client_send(c, http, &(struct http_call){.method = "GET", .url = url});
}

void client_stream(struct client *c, struct http *http, int port)
{
    auto_free char *url = client_url("http", port, "/watch");
    client_send(c, http, &(struct http_call){.method = "GET", .url = url, .line = client_line});
}

void client_free(struct client *c)
{
    str_free(&c->lines);
    str_free(&c->body);
}

void client_poll(struct http *http, int timeout_ms)
{
    struct error err;
    assert_ok(http_poll(http, NULL, 0, timeout_ms, &err), &err);
}

void client_wait(struct client *c)
{
    while (!c->done)
        client_poll(c->http, -1);
    assert_int_equal(c->done, 1);
}

void client_wait_lines(struct client *c, size_t count)
{
    while (c->line_count < count)
        client_poll(c->http, -1);
}

void client_assert_fails(const struct client *c, enum error_code code, const char *part)
{
    assert_int_equal(c->done, 1);
    assert_int_equal(c->answer.status, 0);
    assert_fails(c->answer.err.code == ERR_NONE ? 0 : -1, &c->answer.err, code, part);
}
