#include "tests/base/client.h"
#include "tests/base/guest.h"
#include "tests/support.h"

#include "base/httpd.h"
#include "base/listen.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* For httpd_answer_below: the path, but no page ends with "none". */
static bool echo_path(void *context, const char *path, struct str *body)
{
    size_t length = strlen(path);
    if (length >= 4 && strcmp(path + length - 4, "none") == 0)
        return false;
    str_printf(body, "%s %s", context ? (const char *)context : "", path);
    return true;
}

static void published_pages_are_served(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    int port = httpd_port(httpd);
    guest_assert_page(port, "/healthz", 503, "503 nothing is published yet\n");
    guest_publish(httpd, "/healthz", 200, "ok\n");
    guest_publish(httpd, "/readyz", 503, "not yet\n");
    guest_publish(httpd, "/empty", 200, "");
    guest_assert_page(port, "/healthz", 200, "ok\n");
    guest_assert_page(port, "/healthz?verbose=1", 200, "ok\n");
    guest_assert_page(port, "/readyz", 503, "not yet\n");
    guest_assert_page(port, "/empty", 200, "");
    guest_publish(httpd, "/readyz", 200, "ready\n");
    guest_assert_page(port, "/readyz", 200, "ready\n");
    static const char *const unknown[] = {"/", "/health", "/healthz/", "/healthz/x", "/HEALTHZ"};
    for (size_t i = 0; i < array_length(unknown); i++)
        guest_assert_page(port, unknown[i], 404, "404 not found\n");
    httpd_close(httpd);
    httpd_close(NULL);
}

/* For browsers: whatever is served, also of what is not there. */
static void pages_are_guarded(void **state)
{
    (void)state;
    static const char *const paths[] = {"/a", "/unknown", "/made/b"};
    static const char *const guards[] = {
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'\r\n",
        "x-content-type-options: nosniff\r\n",
        "referrer-policy: no-referrer\r\n",
        "cross-origin-resource-policy: same-origin\r\n",
        "cache-control: no-store\r\n",
    };
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    httpd_answer_below(httpd, "/made", "text/plain", echo_path, NULL);
    for (size_t i = 0; i < array_length(paths); i++) {
        auto_free char *request =
            xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", paths[i]);
        auto_free char *all = guest_exchange(httpd_port(httpd), request);
        for (size_t g = 0; g < array_length(guards); g++)
            if (!strstr(all, guards[g]))
                fail_msg("%s: no %s in %s", paths[i], guards[g], all);
    }
    httpd_close(httpd);
}

static void what_lies_below_a_path_is_answered_when_asked(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    int port = httpd_port(httpd);
    httpd_answer_below(httpd, "/jobs", "text/plain", echo_path, "seen");
    guest_publish(httpd, "/jobs/known", 200, "published\n");
    guest_assert_page(port, "/jobs", 200, "seen /jobs");
    guest_assert_page(port, "/jobs/a/b?c=d", 200, "seen /jobs/a/b");
    guest_assert_page(port, "/jobs/known", 200, "published\n");
    guest_assert_page(port, "/jobs/none", 404, "404 not found\n");
    guest_assert_page(port, "/jobsearch", 404, "404 not found\n");
    guest_assert_page(port, "/", 404, "404 not found\n");
    httpd_close(httpd);
}

static void only_reading_is_allowed(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    int port = httpd_port(httpd);
    guest_publish(httpd, "/a", 200, "page\n");
    static const struct {
        const char *request, *start, *part, *end;
    } rows[] = {
        {"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ",
         "content-type: text/plain; charset=utf-8\r\n", "\r\n\r\npage\n"},
        {"GET /a HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "content-length: 5\r\n", "\r\n\r\npage\n"},
        {"HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ",
         "content-length: 5\r\n", "\r\n\r\n"},
        {"HEAD /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 ", "",
         "\r\n\r\n"},
        {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 ",
         "allow: GET, HEAD\r\n", "\r\n\r\n405 method not allowed\n"},
        {"DELETE /a HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ", "allow: GET, HEAD\r\n",
         "\r\n\r\n405 method not allowed\n"},
        {"OPTIONS /b HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ", "allow: GET, HEAD\r\n",
         "\r\n\r\n405 method not allowed\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *all = guest_exchange(port, rows[i].request);
        size_t length = strlen(all), end = strlen(rows[i].end);
        if (strncmp(all, rows[i].start, strlen(rows[i].start)) != 0 || !strstr(all, rows[i].part) ||
            length < end || strcmp(all + length - end, rows[i].end) != 0)
            fail_msg("row %zu: %s", i, all);
    }
    httpd_close(httpd);
}

/* None of these is answered with a page, and the server goes on. */
static void nonsense_is_turned_away(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    int port = httpd_port(httpd);
    guest_publish(httpd, "/a", 200, "page\n");
    auto_free char *endless = xcalloc(1, 3 * HTTPD_REQUEST_BYTES_MAX);
    auto_free char *long_path = NULL, *long_header = NULL;
    memset(endless, 'a', 3 * HTTPD_REQUEST_BYTES_MAX - 1);
    long_path = xasprintf("GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", endless);
    long_header = xasprintf("GET /a HTTP/1.1\r\nHost: x\r\nCookie: %s\r\n\r\n", endless);
    const char *const rows[] = {
        long_path,
        long_header,
        "FOO /a HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01 a TLS hello, or so\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *all = guest_exchange(port, rows[i]);
        if (strstr(all, "page") || strstr(all, " 200 ") || strstr(all, " 101 "))
            fail_msg("row %zu: %s", i, all);
    }
    guest_assert_page(port, "/a", 200, "page\n");
    httpd_close(httpd);
}

/* A browser sends the cookies of all servers of a machine, whatever their ports. */
static void cookies_of_others_keep_nobody_out(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    auto_free char *request = xasprintf(
        "GET /a HTTP/1.1\r\nHost: x\r\nCookie: a=%012000d\r\nConnection: close\r\n\r\n", 0);
    auto_free char *all = guest_exchange(httpd_port(httpd), request);
    assert_true(str_starts_with(all, "HTTP/1.1 200 "));
    httpd_close(httpd);
}

static void a_large_page_comes_whole_to_many(void **state)
{
    (void)state;
    enum { CLIENTS = 8, BYTES = 900 * 1000 };
    struct httpd *httpd = guest_server("127.0.0.1");
    auto_free char *text = xmalloc(BYTES + 1);
    for (int i = 0; i < BYTES; i++)
        text[i] = (char)('a' + i % 23);
    text[BYTES] = '\0';
    guest_publish(httpd, "/large", 200, text);
    struct http *http = client_http();
    struct client clients[CLIENTS] = {0};
    for (int i = 0; i < CLIENTS; i++)
        client_get(&clients[i], http, httpd_port(httpd), "/large");
    guest_publish(httpd, "/large", 200, text); /* in the middle of it: old or new, but whole */
    for (int i = 0; i < CLIENTS; i++) {
        client_wait(&clients[i]);
        assert_int_equal(clients[i].body.length, BYTES);
        assert_memory_equal(str_text(&clients[i].body), text, BYTES);
        client_free(&clients[i]);
    }
    http_close(http);
    httpd_close(httpd);
}

static void a_connection_serves_request_after_request(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    /* the second one may be there before the first is answered */
    auto_free char *all = guest_exchange(
        httpd_port(httpd), "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
                           "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"
                           "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    int pages = 0, missing = 0;
    for (const char *at = all; (at = strstr(at, "\r\n\r\npage\n")); at++)
        pages++;
    for (const char *at = all; (at = strstr(at, "\r\n\r\n404 not found\n")); at++)
        missing++;
    assert_int_equal(pages, 2);
    assert_int_equal(missing, 1);
    httpd_close(httpd);
}

/* Publishing from several threads while all is read: for the sanitizers, and pages are
 * never mixed. */
struct publisher {
    pthread_t thread;
    struct httpd *httpd;
    char letter;
    atomic_bool *stop;
};

static void *publish_on(void *arg)
{
    struct publisher *p = arg;
    char text[64];
    memset(text, p->letter, sizeof text);
    while (!atomic_load(p->stop))
        httpd_publish(p->httpd, "/a", 200, "text/plain", text, sizeof text);
    return NULL;
}

static void pages_are_never_mixed(void **state)
{
    (void)state;
    enum { PUBLISHERS = 2, READS = 50 };
    struct httpd *httpd = guest_server("");
    struct http *http = client_http();
    struct publisher publishers[PUBLISHERS];
    atomic_bool stop = false;
    httpd_publish(httpd, "/a", 200, "text/plain", "0000", 4);
    for (int i = 0; i < PUBLISHERS; i++) {
        publishers[i] =
            (struct publisher){.httpd = httpd, .letter = (char)('1' + i), .stop = &stop};
        assert_int_equal(pthread_create(&publishers[i].thread, NULL, publish_on, &publishers[i]),
                         0);
    }
    for (int i = 0; i < READS; i++) {
        struct client client = {0};
        client_get(&client, http, httpd_port(httpd), "/a");
        client_wait(&client);
        const char *text = str_text(&client.body);
        assert_int_equal(strspn(text, (char[]){text[0], '\0'}), client.body.length);
        client_free(&client);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < PUBLISHERS; i++)
        pthread_join(publishers[i].thread, NULL);
    http_close(http);
    httpd_close(httpd);
}

static void closing_does_not_wait_for_clients(void **state)
{
    (void)state;
    enum { BYTES = 32 << 20 };
    struct httpd *httpd = guest_server("");
    auto_free char *text = xcalloc(1, BYTES);
    static const char request[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    char byte;
    httpd_publish(httpd, "/large", 200, "text/plain", text, BYTES);
    auto_close int idle = guest_dial(httpd_port(httpd)), reading = guest_dial(httpd_port(httpd));
    assert_int_equal(send(reading, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(recv(reading, &byte, 1, 0), 1); /* and the rest does not fit in the socket */
    httpd_close(httpd);
    assert_true(recv(idle, &byte, 1, 0) <= 0);
}

static void where_it_cannot_listen_is_told(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("127.0.0.1"), *none = NULL;
    struct error err;
    char part[64];
    snprintf(part, sizeof part, "listen on 127.0.0.1: port %d is in use", httpd_port(httpd));
    assert_fails(httpd_open(&none, "127.0.0.1", httpd_port(httpd), &err), &err, ERR_EXISTS, part);
    assert_fails(httpd_open(&none, "localhost:80", 0, &err), &err, ERR_CONFIG,
                 "listen on localhost:80: this is no IPv4 or IPv6 address");
    assert_fails(httpd_open(&none, "192.0.2.1", 0, &err), &err, ERR_CONFIG,
                 "listen on 192.0.2.1: this machine has no such address");
    assert_null(none);
    httpd_close(httpd);
}

/* Whether this machine has IPv6 at all decides about the second half. */
static void the_wildcard_is_both_families(void **state)
{
    (void)state;
    int fd;
    struct error err;
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    guest_assert_page(httpd_port(httpd), "/a", 200, "page\n");
    if (listen_tcp("::1", 0, &fd, &err) == 0) {
        close(fd);
        struct http *http = client_http();
        struct client client = {0};
        auto_free char *url = xasprintf("http://[::1]:%d/a", httpd_port(httpd));
        client_send(&client, http, &(struct http_call){.method = "GET", .url = url});
        client_wait(&client);
        assert_string_equal(str_text(&client.body), "page\n");
        client_free(&client);
        http_close(http);
    }
    httpd_close(httpd);
}

static long status_of(int port, const char *path)
{
    struct http *http = client_http();
    struct client client = {0};
    client_get(&client, http, port, path);
    client_wait(&client);
    long status = client.answer.status;
    client_free(&client);
    http_close(http);
    return status;
}

static void a_page_that_is_not_renewed_is_503(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/healthz", 200, "ok\n");
    httpd_expect(httpd, "/healthz", 1);
    while (status_of(httpd_port(httpd), "/healthz") != 503) /* after a millisecond */
        ;
    httpd_expect(httpd, "/healthz", 3600 * 1000);
    guest_assert_page(httpd_port(httpd), "/healthz", 200, "ok\n");
    httpd_close(httpd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_pages_are_served),
        cmocka_unit_test(pages_are_guarded),
        cmocka_unit_test(what_lies_below_a_path_is_answered_when_asked),
        cmocka_unit_test(a_page_that_is_not_renewed_is_503),
        cmocka_unit_test(only_reading_is_allowed),
        cmocka_unit_test(nonsense_is_turned_away),
        cmocka_unit_test(cookies_of_others_keep_nobody_out),
        cmocka_unit_test(a_large_page_comes_whole_to_many),
        cmocka_unit_test(a_connection_serves_request_after_request),
        cmocka_unit_test(pages_are_never_mixed),
        cmocka_unit_test(closing_does_not_wait_for_clients),
        cmocka_unit_test(where_it_cannot_listen_is_told),
        cmocka_unit_test(the_wildcard_is_both_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
