#include "tests/base/client.h"
#include "tests/fake_server.h"
#include "tests/support.h"

#include "base/clock.h"
#include "base/http_request.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what goes wrong ---- */

static void what_cannot_be_sent_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *url, *bearer;
        enum error_code code;
        const char *part;
    } rows[] = {
        {"http://127.0.0.1:1/x", NULL, ERR_IO, "GET http://127.0.0.1:1/x: "},
        {"http://127.0.0.1:1/x", NULL, ERR_IO, "Connection refused"},
        {"http://127.0.0.1:99999/", NULL, ERR_CONFIG, "GET http://127.0.0.1:99999/: "},
        {"ftp://127.0.0.1/", NULL, ERR_CONFIG, "ftp"},
        {"file:///etc/passwd", NULL, ERR_CONFIG, "file"},
        {"http://127.0.0.1:1/", "a\r\nEvil: 1", ERR_CONFIG, "the token has a line break"},
    };
    struct http *http = client_http();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct client client = {0};
        client_send(
            &client, http,
            &(struct http_call){.method = "GET", .url = rows[i].url, .bearer = rows[i].bearer});
        assert_int_equal(client.done, 0); /* never from within http_send */
        client_wait(&client);
        client_assert_fails(&client, rows[i].code, rows[i].part);
        client_free(&client);
    }
    http_close(http);
}

static void answers_that_break_off_are_told(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = FAKE_OK(10, "12345"), .then = FAKE_CLOSE},
        {.bytes = FAKE_CHUNKED "5\r\n123", .then = FAKE_CLOSE},
        {.bytes = "HTTP/1.1 200 O", .then = FAKE_CLOSE},
        {.bytes = "SSH-2.0-no-http\r\n", .then = FAKE_CLOSE},
        {.bytes = "", .then = FAKE_CLOSE},
    };
    for (size_t i = 0; i < array_length(answers); i++) {
        struct fake_server *server = fake_server_open(&answers[i], 1, NULL);
        struct http *http = client_http();
        struct client client = {0};
        client_get(&client, http, fake_server_port(server), "/");
        client_wait(&client);
        assert_int_equal(client.answer.err.code == ERR_NONE, 0);
        assert_string_equal(str_text(&client.body), "");
        client_free(&client);
        http_close(http);
        fake_server_close(server);
    }
}

struct silence {
    const char *answer; /* then nothing */
    bool is_idle;       /* what is tried is idle_timeout_ms, else timeout_ms */
    int64_t other_ms;   /* the one of them that is not tried */
    const char *lines;
};

/* Whether all the lines came before the time was up, as it is with one that is long enough. */
static bool silence_is_given_up(const struct silence *row, int64_t limit_ms)
{
    struct fake_answer answer = {.bytes = row->answer, .then = FAKE_HOLD};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http();
    struct client client = {0};
    auto_free char *url = client_url("http", fake_server_port(server), "/");
    auto_free char *error =
        xasprintf(row->is_idle ? "nothing received for %d ms" : "no whole answer within %d ms",
                  (int)limit_ms);
    client_send(&client, http,
                &(struct http_call){.method = "GET",
                                    .url = url,
                                    .timeout_ms = row->is_idle ? row->other_ms : limit_ms,
                                    .idle_timeout_ms = row->is_idle ? limit_ms : row->other_ms,
                                    .line = client_line});
    client_wait(&client);
    client_assert_fails(&client, ERR_TIMEOUT, error);
    const char *lines = str_text(&client.lines);
    assert_int_equal(strncmp(row->lines, lines, strlen(lines)), 0);
    bool are_all = strcmp(row->lines, lines) == 0;
    client_free(&client);
    http_close(http);
    fake_server_close(server);
    return are_all;
}

static void a_silent_server_is_given_up_in_time(void **state)
{
    (void)state;
    static const struct silence rows[] = {
        {"", false, 0, ""},
        {FAKE_CHUNKED "4\r\none\n\r\n", false, SUPPORT_PATIENCE_MS, "one|"},
        {"", true, SUPPORT_PATIENCE_MS, ""},
        {FAKE_CHUNKED "6\r\none\ntw\r\n", true, 0, "one|"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t limit_ms = 40; /* for a busy machine it may be too short */
        while (!silence_is_given_up(&rows[i], limit_ms))
            limit_ms = support_longer_ms(limit_ms);
    }
}

/* Each byte puts the idle deadline off. Looks inside, because a test by the clock alone would
 * depend on how busy the machine is. */
static void a_stream_that_talks_is_not_idle(void **state)
{
    (void)state;
    enum { IDLE_MS = SUPPORT_PATIENCE_MS };
    static const struct fake_answer answer = {.bytes = FAKE_CHUNKED "4\r\none\n\r\n",
                                              .pause = true,
                                              .pause_at = sizeof FAKE_CHUNKED - 1,
                                              .then = FAKE_HOLD};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http();
    struct client client = {0};
    auto_free char *url = client_url("http", fake_server_port(server), "/");
    client_send(&client, http,
                &(struct http_call){
                    .method = "GET", .url = url, .idle_timeout_ms = IDLE_MS, .line = client_line});
    while (!client.request->headers_whole)
        client_poll(http, -1);
    int64_t headers_ms = client.request->heard_ms;
    assert_int_equal(http_request_deadline(client.request), headers_ms + IDLE_MS);
    while (clock_monotonic_ms() == headers_ms)
        continue;
    fake_server_go(server);
    client_wait_lines(&client, 1);
    assert_true(client.request->heard_ms > headers_ms);
    assert_int_equal(http_request_deadline(client.request), client.request->heard_ms + IDLE_MS);
    http_close(http);
    client_free(&client);
    fake_server_close(server);
}

/* A listener that never accepts: the kernel connects, and TLS never comes. */
static bool connecting_is_given_up(int64_t limit_ms)
{
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    struct http *http = client_http_with(&(struct http_options){.max_body_bytes = 64,
                                                                .max_line_bytes = 64,
                                                                .max_in_flight = 1,
                                                                .connect_timeout_ms = limit_ms});
    struct client client = {0};
    auto_free char *url = client_url("https", ntohs(address.sin_port), "/");
    client_send(&client, http, &(struct http_call){.method = "GET", .url = url});
    client_wait(&client);
    const struct error *err = &client.answer.err;
    bool is = support_is_error(-1, err, ERR_TIMEOUT, "SSL connection timeout");
    client_free(&client);
    http_close(http);
    return is;
}

static void connecting_has_a_limit_of_its_own(void **state)
{
    (void)state;
    int64_t limit_ms = 250;
    while (!connecting_is_given_up(limit_ms))
        limit_ms = support_longer_ms(limit_ms);
}

/* ---- cancelling, closing, calling back ---- */

static void what_is_cancelled_is_silent(void **state)
{
    (void)state;
    static const struct fake_answer answer = {.bytes = FAKE_CHUNKED "8\r\none\ntwo\n\r\n",
                                              .then = FAKE_HOLD};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http_with(
        &(struct http_options){.max_body_bytes = 64, .max_line_bytes = 64, .max_in_flight = 2});
    struct client by_line = {0}, first = {0}, second = {0}, waiting = {0}, last = {0};
    by_line.line_cancels = &by_line.request; /* the second line is not told then */
    client_stream(&by_line, http, fake_server_port(server));
    client_wait_lines(&by_line, 1);
    assert_int_equal(http_in_flight(http), 0);
    assert_string_equal(str_text(&by_line.lines), "one|");

    client_stream(&first, http, fake_server_port(server));
    client_stream(&second, http, fake_server_port(server));
    client_stream(&waiting, http, fake_server_port(server));
    client_wait_lines(&first, 2);
    http_cancel(http, waiting.request);
    http_cancel(http, first.request);
    http_cancel(http, NULL);
    assert_int_equal(http_in_flight(http), 1);
    client_stream(&last, http, fake_server_port(server)); /* takes the place of the first */
    client_wait_lines(&last, 2);
    client_wait_lines(&second, 2);
    assert_int_equal(by_line.done + first.done + second.done + waiting.done + last.done, 0);
    assert_int_equal(waiting.line_count, 0);
    assert_int_equal(fake_server_request_count(server), 4);
    http_close(http);
    struct client *all[] = {&by_line, &first, &second, &waiting, &last};
    for (size_t i = 0; i < array_length(all); i++)
        client_free(all[i]);
    fake_server_close(server);
}

/* Both are refused in one round: the first one's `done` cancels the other, whichever it is. */
static void done_may_cancel_others_that_are_done(void **state)
{
    (void)state;
    struct http *http = client_http();
    struct client clients[2] = {0};
    for (int i = 0; i < 2; i++) {
        clients[i].done_cancels = &clients[1 - i].request;
        client_send(
            &clients[i], http,
            &(struct http_call){.method = "GET", .url = "http://127.0.0.1:1/", .bearer = "\n"});
    }
    client_poll(http, -1);
    assert_int_equal(clients[0].done + clients[1].done, 1);
    assert_int_equal(http_in_flight(http), 0);
    client_free(&clients[0]);
    client_free(&clients[1]);
    http_close(http);
}

static void done_may_send(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    static const struct fake_answer answer = {.bytes = FAKE_OK(2, "ok")};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http_with(
        &(struct http_options){.max_body_bytes = 64, .max_line_bytes = 64, .max_in_flight = 1});
    struct client clients[COUNT] = {0};
    auto_free char *url = client_url("http", fake_server_port(server), "/");
    for (int i = 0; i + 1 < COUNT; i++) {
        clients[i].then = &clients[i + 1];
        clients[i].then_call = (struct http_call){.method = "GET", .url = url};
    }
    client_send(&clients[0], http, &(struct http_call){.method = "GET", .url = url});
    while (!clients[COUNT - 1].done)
        client_poll(http, -1);
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(str_text(&clients[i].body), "ok");
        client_free(&clients[i]);
    }
    http_close(http);
    fake_server_close(server);
}

static void closing_ends_all_requests_silently(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    static const struct fake_answer answer = {.bytes = FAKE_CHUNKED "4\r\none\n\r\n",
                                              .then = FAKE_HOLD};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http_with(&(struct http_options){
        .max_body_bytes = 64, .max_line_bytes = 64, .max_in_flight = COUNT / 2});
    struct client clients[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        client_stream(&clients[i], http, fake_server_port(server));
    client_wait_lines(&clients[0], 1);
    http_close(http);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(clients[i].done, 0);
        client_free(&clients[i]);
    }
    fake_server_close(server);
    http_close(NULL);
}

/* ---- waiting ---- */

static void other_descriptors_end_the_wait(void **state)
{
    (void)state;
    static const struct fake_answer answer = {.bytes = FAKE_CHUNKED "4\r\none\n\r\n",
                                              .then = FAKE_HOLD};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http();
    struct client client = {0};
    struct error err;
    client_stream(&client, http, fake_server_port(server));
    client_wait_lines(&client, 1);

    int pipe_fds[2];
    uint64_t one = 1;
    auto_close int event = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pipe(pipe_fds), 0);
    struct pollfd fds[] = {{.fd = event, .events = POLLIN}, {.fd = pipe_fds[0], .events = POLLIN}};
    assert_ok(http_poll(http, fds, 2, 0, &err), &err);
    assert_int_equal(fds[0].revents | fds[1].revents, 0);
    assert_int_equal(write(event, &one, sizeof one), sizeof one);
    while (!fds[0].revents)
        assert_ok(http_poll(http, fds, 2, -1, &err), &err);
    assert_int_equal(fds[0].revents, POLLIN);
    assert_int_equal(fds[1].revents, 0);
    assert_int_equal(read(event, &one, sizeof one), sizeof one);
    close(pipe_fds[1]);
    while (!fds[1].revents)
        assert_ok(http_poll(http, fds, 2, -1, &err), &err);
    assert_int_equal(fds[1].revents, POLLHUP);
    assert_int_equal(fds[0].revents, 0);
    close(pipe_fds[0]);
    client_free(&client);
    http_close(http);
    fake_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_sent_is_told),
        cmocka_unit_test(answers_that_break_off_are_told),
        cmocka_unit_test(a_silent_server_is_given_up_in_time),
        cmocka_unit_test(a_stream_that_talks_is_not_idle),
        cmocka_unit_test(connecting_has_a_limit_of_its_own),
        cmocka_unit_test(what_is_cancelled_is_silent),
        cmocka_unit_test(done_may_cancel_others_that_are_done),
        cmocka_unit_test(done_may_send),
        cmocka_unit_test(closing_ends_all_requests_silently),
        cmocka_unit_test(other_descriptors_end_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
