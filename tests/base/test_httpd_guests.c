#include "tests/base/guest.h"
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads until the server closes, which it must within a minute. Returns how many bytes came. */
static size_t read_to_end(int fd)
{
    const struct timeval limit = {.tv_sec = 60};
    char bytes[4096];
    size_t count = 0;
    ssize_t n;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        count += (size_t)n;
    assert_true(n == 0 || errno == ECONNRESET);
    return count;
}

static bool is_served(int fd)
{
    static const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    return send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request) &&
           read_to_end(fd) > 0;
}

/* So many are kept; the oldest makes room for one more. */
static void connections_are_capped(void **state)
{
    (void)state;
    enum { MORE = 20 };
    struct httpd *httpd = guest_server("");
    int port = httpd_port(httpd), fds[HTTPD_CONNECTIONS_MAX + MORE];
    guest_publish(httpd, "/a", 200, "page\n");
    for (size_t i = 0; i < array_length(fds); i++)
        fds[i] = guest_dial(port);
    for (int i = 0; i < MORE; i++)
        assert_int_equal(read_to_end(fds[i]), 0);
    for (size_t i = MORE; i < array_length(fds); i++)
        assert_true(is_served(fds[i]));
    for (size_t i = 0; i < array_length(fds); i++)
        close(fds[i]);
    guest_assert_page(port, "/a", 200, "page\n");
    httpd_close(httpd);
}

/* MORE_THAN_WAITS: of an answer in the kernel's buffers, 4 MiB of the server's and the client's. */
enum { READERS = 4, LONG_PAGE = 12 << 20, MORE_THAN_WAITS = 6 << 20 };

static bool long_answer(void *context, const char *path, struct str *body)
{
    (void)context, (void)path;
    auto_free char *text = xcalloc(1, LONG_PAGE);
    memset(text, 'x', LONG_PAGE);
    str_add_bytes(body, text, LONG_PAGE);
    return true;
}

/* A connection whose answer has begun, of which it reads no more. */
static int dial_slow_reader(int port, const char *path)
{
    auto_free char *request =
        xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    char head[12];
    const int room = 256 * 1024;
    int fd = guest_dial(port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(recv(fd, head, sizeof head, MSG_WAITALL), sizeof head);
    assert_memory_equal(head, "HTTP/1.1 200", sizeof head);
    return fd;
}

/* All of them at once: who waits for another is slow. Each until it has so much that its server is
 * still sending, or ends. Closes them. */
static void read_on(int fds[READERS], size_t bytes[READERS])
{
    static char chunk[64 * 1024];
    for (int open = READERS; open > 0;) {
        struct pollfd polls[READERS];
        for (int i = 0; i < READERS; i++)
            polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
        assert_true(poll(polls, READERS, -1) > 0);
        for (int i = 0; i < READERS; i++) {
            ssize_t n = polls[i].revents ? recv(fds[i], chunk, sizeof chunk, 0) : 0;
            bytes[i] += n > 0 ? (size_t)n : 0;
            if (!polls[i].revents || (n > 0 && bytes[i] < MORE_THAN_WAITS))
                continue;
            close(take_fd(fds[i]));
            open--;
        }
    }
}

/* Answers of their own that are held by who reads slowly have an end: the oldest readers lose. What
 * all are sent costs nothing more, and all have it. */
static void slow_readers_hold_no_more_than_a_share(void **state)
{
    (void)state;
    enum { HELD = (int)(HTTPD_HELD_BYTES_MAX / LONG_PAGE) };
    struct httpd *httpd = guest_server("");
    auto_free char *text = xcalloc(1, LONG_PAGE + 1);
    memset(text, 'x', LONG_PAGE);
    guest_publish(httpd, "/shared", 200, text);
    httpd_answer_below(httpd, "/own", "text/plain", long_answer, NULL);
    for (int own = 0; own < 2; own++) {
        int fds[READERS], lost = own ? READERS - HELD - 1 : 0;
        for (int i = 0; i < READERS; i++)
            fds[i] = dial_slow_reader(httpd_port(httpd), own ? "/own" : "/shared");
        size_t bytes[READERS] = {0};
        read_on(fds, bytes);
        for (int i = 0; i < READERS; i++)
            if ((bytes[i] < MORE_THAN_WAITS) != (i < lost))
                fail_msg("reader %d of %s has %zu bytes", i, own ? "/own" : "/shared", bytes[i]);
    }
    httpd_close(httpd);
}

/* Whoever holds all connections, in whatever way, a probe of /healthz is answered. */
static void nobody_can_keep_others_out(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "",
        "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /steps HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        "GET /steps HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
        "GET /a HTTP/1.1\r\nHo",
    };
    for (size_t i = 0; i < array_length(requests); i++) {
        struct httpd *httpd = guest_server("");
        int port = httpd_port(httpd), fds[2 * HTTPD_CONNECTIONS_MAX];
        httpd_stream(httpd, "/steps");
        guest_publish(httpd, "/a", 200, "page\n");
        for (size_t c = 0; c < array_length(fds); c++) {
            fds[c] = guest_dial(port);
            send(fds[c], requests[i], strlen(requests[i]), MSG_NOSIGNAL);
        }
        auto_close int probe = guest_dial(port);
        if (!is_served(probe))
            fail_msg("row %zu: the probe is not answered", i);
        for (size_t c = 0; c < array_length(fds); c++)
            close(fds[c]);
        httpd_close(httpd);
    }
}

/* lws has other roles than HTTP/1.1, without time limits: none is to be had. Nor is there a time
 * limit, but a loop without end, where content has arrived together with the request before. */
static void what_is_not_served_ends_the_connection(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nContent-Length: "
        "3\r\n\r\nabc",
        "GET /a HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nUpgrade: mqtt\r\nConnection: Upgrade\r\n\r\n",
    };
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    for (size_t i = 0; i < array_length(requests); i++)
        for (int c = 0; c < HTTPD_CONNECTIONS_MAX; c++) {
            auto_close int fd = guest_dial(httpd_port(httpd));
            assert_int_equal(send(fd, requests[i], strlen(requests[i]), MSG_NOSIGNAL),
                             strlen(requests[i]));
            read_to_end(fd);
        }
    guest_assert_page(httpd_port(httpd), "/a", 200, "page\n");
    httpd_close(httpd);
}

static void only_local_names_are_served_over_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *request, *start;
    } rows[] = {
        {"GET /a HTTP/1.1\r\nHost: localhost:9401\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
        {"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
        {"GET /a HTTP/1.0\r\n\r\n", "HTTP/1.0 200 "},
        {"GET /a HTTP/1.1\r\nHost: evil.example:9401\r\nConnection: close\r\n\r\n",
         "HTTP/1.1 403 "},
        {"HEAD /a HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 403 "},
    };
    struct httpd *httpd = guest_server("");
    guest_publish(httpd, "/a", 200, "page\n");
    auto_free char *before = guest_exchange(httpd_port(httpd), rows[3].request);
    assert_true(str_starts_with(before, "HTTP/1.1 200 "));
    httpd_local_names_only(httpd);
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *all = guest_exchange(httpd_port(httpd), rows[i].request);
        if (!str_starts_with(all, rows[i].start))
            fail_msg("row %zu: %s", i, all);
    }
    httpd_close(httpd);
}

/* The process's newest thread. */
static int newest_thread(void)
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    int newest = 0;
    while ((entry = readdir(threads)))
        newest = atoi(entry->d_name) > newest ? atoi(entry->d_name) : newest;
    closedir(threads);
    return newest;
}

/* A fault of the server's own thread must reach the process's handler of faults. */
static void only_faults_reach_the_thread(void **state)
{
    (void)state;
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct httpd *httpd = guest_server("");
    auto_free char *path = xasprintf("/proc/self/task/%d/status", newest_thread());
    auto_free char *answer = /* the thread runs, with signals of its own */
        guest_exchange(httpd_port(httpd), "GET /a HTTP/1.0\r\n\r\n");
    FILE *status = fopen(path, "re");
    char line[256];
    unsigned long long blocked = 0;
    while (fgets(line, sizeof line, status) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
        continue;
    fclose(status);
    assert_true(blocked >> (SIGTERM - 1) & 1);
    for (size_t i = 0; i < array_length(faults); i++)
        assert_false(blocked >> (faults[i] - 1) & 1);
    httpd_close(httpd);
}

/* Whether the kernel probes the server's connections when they are quiet (timer 2 of
 * /proc/net/tcp): one whose client is gone must not keep its place. */
static void quiet_connections_are_probed(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("127.0.0.1");
    guest_publish(httpd, "/a", 200, "page\n");
    auto_close int fd = guest_dial(httpd_port(httpd));
    int timer = -1;
    char byte;
    static const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    while (timer != 2) { /* until what was sent is acknowledged */
        char line[256];
        FILE *table = fopen("/proc/net/tcp", "re");
        while (fgets(line, sizeof line, table)) {
            unsigned port, status, kind;
            if (sscanf(line, " %*u: %*8x:%x %*x:%*x %x %*x:%*x %x", &port, &status, &kind) == 3 &&
                port == (unsigned)httpd_port(httpd) && status == TCP_ESTABLISHED)
                timer = (int)kind;
        }
        fclose(table);
        assert_int_not_equal(timer, 0); /* none at all */
    }
    httpd_close(httpd);
}

static void a_process_without_files_left_turns_away(void **state)
{
    (void)state;
    struct httpd *httpd = guest_server("");
    struct rlimit before, full;
    char byte;
    guest_publish(httpd, "/a", 200, "page\n");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)httpd_port(httpd)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    auto_close int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int next = dup(client);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    full = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
    int result = connect(client, (struct sockaddr *)&address, sizeof address);
    ssize_t got = recv(client, &byte, 1, 0); /* its end, not for ever nothing */
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(result, 0);
    assert_true(got == 0 || errno == ECONNRESET);
    guest_assert_page(httpd_port(httpd), "/a", 200, "page\n");
    httpd_close(httpd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_capped),
        cmocka_unit_test(slow_readers_hold_no_more_than_a_share),
        cmocka_unit_test(nobody_can_keep_others_out),
        cmocka_unit_test(what_is_not_served_ends_the_connection),
        cmocka_unit_test(only_local_names_are_served_over_loopback),
        cmocka_unit_test(only_faults_reach_the_thread),
        cmocka_unit_test(quiet_connections_are_probed),
        cmocka_unit_test(a_process_without_files_left_turns_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
