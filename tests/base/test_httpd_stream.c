#include "tests/base/guest.h"
#include "tests/support.h"

#include "base/httpd.h"
#include "base/mem.h"

#include <libwebsockets.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEPT_MAX = 4096 };

static struct httpd *open_server(void)
{
    struct httpd *httpd = guest_server("127.0.0.1");
    httpd_stream(httpd, "/steps");
    return httpd;
}

static void push(struct httpd *httpd, const char *text)
{
    httpd_push(httpd, "/steps", text, strlen(text));
}

/* ---- a listener made by libwebsockets ---- */

struct listener {
    struct lws_context *context;
    struct lws *wsi;
    bool established, closed;
    char *messages[KEPT_MAX];
    int count;
    struct str part; /* of the message that is coming in */
};

static int on_client(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                     size_t bytes)
{
    struct listener *l = lws_context_user(lws_get_context(wsi));
    (void)user;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        l->established = true;
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
    case LWS_CALLBACK_CLIENT_CLOSED:
        l->closed = true;
        break;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        str_add_bytes(&l->part, in, bytes);
        if (lws_is_final_fragment(wsi)) {
            assert_false(lws_frame_is_binary(wsi));
            assert_true(l->count < KEPT_MAX);
            l->messages[l->count++] = xstrdup(str_text(&l->part));
            str_clear(&l->part);
        }
        break;
    default:
        break;
    }
    return 0;
}

static void listen_at(struct listener *l, int port, const char *path, const char *subprotocol)
{
    static const struct lws_protocols protocols[] = {
        {.name = "client", .callback = on_client, .rx_buffer_size = HTTPD_MESSAGE_BYTES_MAX}, {0}};
    const struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN, .protocols = protocols, .user = l};
    *l = (struct listener){0};
    str_init(&l->part, 1 << 20);
    l->context = lws_create_context(&info);
    assert_non_null(l->context);
    const struct lws_client_connect_info where = {
        .context = l->context,
        .address = "127.0.0.1",
        .port = port,
        .path = path,
        .host = "127.0.0.1",
        .origin = "127.0.0.1",
        .protocol = subprotocol,
        .local_protocol_name = "client",
        .pwsi = &l->wsi,
    };
    lws_client_connect_via_info(&where);
    while (!l->established && !l->closed)
        lws_service(l->context, 0);
}

static void wait_messages(struct listener *l, int count)
{
    while (l->count < count && !l->closed)
        lws_service(l->context, 0);
    assert_int_equal(l->count, count);
}

static void leave(struct listener *l)
{
    lws_context_destroy(l->context);
    for (int i = 0; i < l->count; i++)
        free(l->messages[i]);
    str_free(&l->part);
}

/* The server learns of a connection, and of its end, in its own time. */
static void wait_listeners(struct httpd *httpd, int count)
{
    while (httpd_listeners(httpd, "/steps") != count)
        sched_yield();
}

static void who_listens_gets_all_messages_in_order(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    struct listener a, b;
    push(httpd, "too early");
    push(httpd, "0");
    listen_at(&a, httpd_port(httpd), "/steps", NULL);
    listen_at(&b, httpd_port(httpd), "/steps?from=here", NULL);
    assert_true(a.established && b.established);
    wait_messages(&a, 1);
    wait_messages(&b, 1);
    for (int i = 1; i <= HTTPD_STREAM_MESSAGES_MAX / 2; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        push(httpd, text);
    }
    wait_messages(&a, 1 + HTTPD_STREAM_MESSAGES_MAX / 2);
    wait_messages(&b, 1 + HTTPD_STREAM_MESSAGES_MAX / 2);
    for (int i = 0; i < a.count; i++) {
        assert_int_equal(atoi(a.messages[i]), i);
        assert_string_equal(a.messages[i], b.messages[i]);
    }
    leave(&a);
    wait_listeners(httpd, 1);
    leave(&b);
    wait_listeners(httpd, 0);
    httpd_close(httpd);
}

static void a_message_of_full_size_comes_whole(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    struct listener l;
    auto_free char *text = xcalloc(1, HTTPD_MESSAGE_BYTES_MAX + 1);
    for (int i = 0; i < HTTPD_MESSAGE_BYTES_MAX; i++)
        text[i] = (char)('a' + i % 23);
    listen_at(&l, httpd_port(httpd), "/steps", NULL);
    wait_listeners(httpd, 1); /* who comes later gets the last message only */
    push(httpd, text);
    push(httpd, "");
    wait_messages(&l, 2);
    assert_string_equal(l.messages[0], text);
    assert_string_equal(l.messages[1], "");
    leave(&l);
    httpd_close(httpd);
}

static void only_streams_take_listeners(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    httpd_publish(httpd, "/page", 200, "text/plain", "page\n", 5);
    static const struct {
        const char *path, *subprotocol;
    } rows[] = {{"/page", NULL},        {"/", NULL},    {"/steps/", NULL}, {"/steps", "http"},
                {"/steps", "listener"}, {"/steps", "x"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct listener l;
        listen_at(&l, httpd_port(httpd), rows[i].path, rows[i].subprotocol);
        assert_true(l.closed);
        leave(&l);
    }
    /* and a stream is no page */
    auto_free char *answer = guest_exchange(
        httpd_port(httpd), "GET /steps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(answer, "\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"));
    guest_assert_page(httpd_port(httpd), "/steps", 426, "426 only WebSockets are served here\n");
    httpd_close(httpd);
}

/* ---- listeners made by hand: they can keep still, or lie ---- */

/* Who may read a run: programs, and web pages of this very server; nobody who asks for HTTP/2. */
static void only_own_pages_and_programs_may_listen(void **state)
{
    (void)state;
#define LISTEN(host) LISTEN_AT("/steps", host)
#define LISTEN_AT(path, host)                                                                      \
    "GET " path " HTTP/1.1\r\nHost: " host "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"     \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    static const struct {
        const char *request, *start;
    } rows[] = {
        {LISTEN("localhost:9401") "\r\n", "HTTP/1.1 101 "},
        {LISTEN("localhost:9401") "Origin: http://localhost:9401\r\n\r\n", "HTTP/1.1 101 "},
        {LISTEN("[::1]:9401") "Origin: http://[::1]:9401\r\n\r\n", "HTTP/1.1 101 "},
        {LISTEN("localhost:9401") "Origin: http://evil.example\r\n\r\n", "HTTP/1.0 403 "},
        {LISTEN("localhost:9401") "Origin: http://localhost:3000\r\n\r\n", "HTTP/1.0 403 "},
        {LISTEN("localhost:9401") "Origin: https://localhost:9401\r\n\r\n", "HTTP/1.0 403 "},
        {LISTEN("localhost:9401") "Origin: null\r\n\r\n", "HTTP/1.0 403 "},
        {LISTEN("localhost") "Origin: http://localhost\r\nOrigin: http://evil.example\r\n\r\n",
         "HTTP/1.0 403 "},
        {LISTEN("evil.example:9401") "Origin: http://evil.example:9401\r\n\r\n", "HTTP/1.0 403 "},
        {LISTEN("evil.example:9401") "\r\n", "HTTP/1.0 403 "},
        {LISTEN_AT("/page", "localhost:9401") "\r\n", "HTTP/1.0 404 "},
        {LISTEN_AT("/page", "localhost:9401") "Origin: http://evil.example\r\n\r\n",
         "HTTP/1.0 403 "},
        {LISTEN("localhost:9401") "Sec-WebSocket-Protocol: x\r\n\r\n", "HTTP/1.0 400 "},
    };
#undef LISTEN
#undef LISTEN_AT
    struct httpd *httpd = open_server();
    httpd_local_names_only(httpd);
    for (size_t i = 0; i < array_length(rows); i++) {
        char answer[64] = "";
        auto_close int fd = guest_dial(httpd_port(httpd));
        assert_int_equal(send(fd, rows[i].request, strlen(rows[i].request), MSG_NOSIGNAL),
                         strlen(rows[i].request));
        assert_true(recv(fd, answer, sizeof answer - 1, 0) > 0);
        if (!str_starts_with(answer, rows[i].start))
            fail_msg("row %zu: %s", i, answer);
    }
    httpd_close(httpd);
}

/* HTTP/2 without TLS is an upgrade as well (h2c), and libwebsockets' own: three HEADERS frames let
 * 4.1.6 read what it has freed. */
static void http2_is_no_stream(void **state)
{
    (void)state;
#define UPGRADE(to)                                                                                \
    "GET /steps HTTP/1.1\r\nHost: x\r\nUpgrade: " to "\r\nConnection: Upgrade, HTTP2-Settings\r\n" \
    "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    static const char frames[] = "\0\0\0\4\0\0\0\0\0"
                                 "\0\0\6\1\0\0\0\0\3\x82\x84\x86\x41\1x"
                                 "\0\0\6\1\0\0\0\0\5\x82\x84\x86\x41\1x"
                                 "\0\0\6\1\5\0\0\0\7\x82\x84\x86\x41\1x";
    static const char *const rows[] = {UPGRADE("h2c"), UPGRADE("H2C"), UPGRADE("h2c, websocket"),
                                       UPGRADE("h2c\r\nUpgrade: websocket"),
                                       UPGRADE("websocket\r\nUpgrade: h2c")};
#undef UPGRADE
    struct httpd *httpd = open_server();
    for (size_t i = 0; i < array_length(rows); i++)
        for (int c = 0; c < HTTPD_CONNECTIONS_MAX; c++) {
            char answer[64] = "";
            auto_close int fd = guest_dial(httpd_port(httpd));
            send(fd, rows[i], strlen(rows[i]), MSG_NOSIGNAL);
            send(fd, frames, sizeof frames - 1, MSG_NOSIGNAL);
            ssize_t n = recv(fd, answer, sizeof answer - 1, 0);
            if (n > 0 && str_starts_with(answer, "HTTP/1.1 101"))
                fail_msg("row %zu: %s", i, answer);
        }
    assert_int_equal(httpd_listeners(httpd, "/steps"), 0);
    httpd_close(httpd);
}

static int dial(int port)
{
    static const char request[] =
        "GET /steps HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    return fd;
}

static void who_does_not_read_is_dropped_and_others_go_on(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    struct listener l;
    auto_free char *text = xcalloc(1, HTTPD_MESSAGE_BYTES_MAX + 1);
    memset(text, 'x', HTTPD_MESSAGE_BYTES_MAX);
    auto_close int still = dial(httpd_port(httpd));
    wait_listeners(httpd, 1);
    listen_at(&l, httpd_port(httpd), "/steps", NULL);
    wait_listeners(httpd, 2);
    int pushed = 0;
    for (; httpd_listeners(httpd, "/steps") == 2; pushed++) {
        /* the sockets take at most some MiB, and then comes the queue */
        assert_true(pushed < 512 + HTTPD_STREAM_MESSAGES_MAX);
        push(httpd, text);
        wait_messages(&l, pushed + 1);
    }
    assert_true(pushed > HTTPD_STREAM_MESSAGES_MAX);
    push(httpd, "on");
    wait_messages(&l, pushed + 1);
    assert_string_equal(l.messages[pushed], "on");
    leave(&l);
    httpd_close(httpd);
}

static void listeners_are_capped(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    int fds[HTTPD_STREAM_CLIENTS_MAX];
    char answer[16] = "";
    for (int i = 0; i < HTTPD_STREAM_CLIENTS_MAX; i++)
        fds[i] = dial(httpd_port(httpd));
    wait_listeners(httpd, HTTPD_STREAM_CLIENTS_MAX);
    auto_close int more = dial(httpd_port(httpd));
    assert_true(recv(more, answer, sizeof answer - 1, 0) > 0);
    assert_true(str_starts_with(answer, "HTTP/1.0 503 "));
    close(fds[0]);
    wait_listeners(httpd, HTTPD_STREAM_CLIENTS_MAX - 1);
    fds[0] = dial(httpd_port(httpd));
    wait_listeners(httpd, HTTPD_STREAM_CLIENTS_MAX);
    httpd_close(httpd); /* does not wait for them */
    for (int i = 0; i < HTTPD_STREAM_CLIENTS_MAX; i++)
        close(fds[i]);
}

static void *push_many(void *arg)
{
    for (int i = 0; i < 1000; i++)
        push(arg, "a message");
    return NULL;
}

/* For the sanitizers: pushing from two threads while listeners come and go. */
static void pushing_is_for_any_thread(void **state)
{
    (void)state;
    struct httpd *httpd = open_server();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_many, httpd), 0);
    for (int i = 0; i < 20; i++) {
        struct listener l;
        listen_at(&l, httpd_port(httpd), "/steps", NULL);
        if (l.established && i % 2 == 0)
            while (l.count == 0 && !l.closed)
                lws_service(l.context, 0);
        leave(&l);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    httpd_close(httpd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_gets_all_messages_in_order),
        cmocka_unit_test(a_message_of_full_size_comes_whole),
        cmocka_unit_test(only_streams_take_listeners),
        cmocka_unit_test(only_own_pages_and_programs_may_listen),
        cmocka_unit_test(http2_is_no_stream),
        cmocka_unit_test(who_does_not_read_is_dropped_and_others_go_on),
        cmocka_unit_test(listeners_are_capped),
        cmocka_unit_test(pushing_is_for_any_thread),
    };
    lws_set_log_level(0, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
