#include "tests/base/client.h"
#include "tests/fake_server.h"
#include "tests/support.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---- */

static const char events[] = FAKE_CHUNKED "5\r\none\nt\r\n7\r\nwo\n\nthr\r\n3\r\nee\n\r\n0\r\n\r\n";
static const char events_lines[] = "one|two||three|";

/* How many lines of events are whole within its first `cut` bytes. */
static size_t lines_within(size_t cut)
{
    size_t lines = 0;
    for (size_t i = sizeof FAKE_CHUNKED - 1; i < cut; i++)
        lines += events[i] == '\n' && events[i - 1] != '\r';
    return lines;
}

static void assert_lines(const struct client *client, size_t count)
{
    const char *end = events_lines;
    for (size_t i = 0; i < count; i++)
        end = strchr(end, '|') + 1;
    assert_int_equal(client->line_count, count);
    assert_int_equal(client->lines.length, end - events_lines);
    assert_memory_equal(str_text(&client->lines), events_lines, client->lines.length);
}

static void lines_may_be_cut_anywhere(void **state)
{
    (void)state;
    enum { CUTS = sizeof events };
    struct fake_answer answers[CUTS];
    for (size_t cut = 0; cut < CUTS; cut++)
        answers[cut] = (struct fake_answer){.bytes = events, .pause = true, .pause_at = cut};
    struct fake_server *server = fake_server_open(answers, CUTS, NULL);
    struct http *http = client_http();
    for (size_t cut = 0; cut < CUTS; cut++) {
        struct client client = {0};
        struct error err;
        struct pollfd paused = {.fd = fake_server_pauses(server), .events = POLLIN};
        uint64_t pauses;
        client_stream(&client, http, fake_server_port(server));
        while (!paused.revents)
            assert_ok(http_poll(http, &paused, 1, -1, &err), &err);
        assert_int_equal(read(paused.fd, &pauses, sizeof pauses), sizeof pauses);
        while (client.line_count < lines_within(cut)) /* what is whole is given out at once */
            client_poll(http, -1);
        assert_lines(&client, lines_within(cut));
        fake_server_go(server);
        client_wait(&client);
        assert_ok(client.answer.err.code, &client.answer.err);
        assert_lines(&client, lines_within(sizeof events));
        assert_string_equal(str_text(&client.body), "");
        client_free(&client);
    }
    assert_int_equal(fake_server_connection_count(server), 1);
    http_close(http);
    fake_server_close(server);
}

static void a_stream_cut_off_anywhere_fails_after_its_whole_lines(void **state)
{
    (void)state;
    enum { CUTS = sizeof events - 2 }; /* libcurl forgives a missing last newline */
    struct fake_answer answers[CUTS];
    for (size_t cut = 1; cut < CUTS; cut++)
        answers[cut - 1] = (struct fake_answer){.bytes = events, .count = cut, .then = FAKE_CLOSE};
    struct fake_server *server = fake_server_open(answers, CUTS - 1, NULL);
    struct http *http = client_http();
    for (size_t cut = 1; cut < CUTS; cut++) {
        struct client client = {0};
        client_stream(&client, http, fake_server_port(server));
        client_wait(&client);
        client_assert_fails(&client, ERR_IO, "/watch: ");
        assert_lines(&client, lines_within(cut));
        client_free(&client);
    }
    http_close(http);
    fake_server_close(server);
}

static void the_last_line_needs_no_newline_if_the_answer_is_whole(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        {.bytes = FAKE_OK(7, "one\ntwo")},
        {.bytes = FAKE_OK(8, "one\ntwo"), .then = FAKE_CLOSE},
    };
    static const char *const expected[] = {"one|two|", "one|"};
    struct fake_server *server = fake_server_open(answers, 2, NULL);
    struct http *http = client_http();
    for (size_t i = 0; i < 2; i++) {
        struct client client = {0};
        client_stream(&client, http, fake_server_port(server));
        client_wait(&client);
        assert_string_equal(str_text(&client.lines), expected[i]);
        assert_int_equal(client.answer.err.code, i ? ERR_IO : ERR_NONE);
        client_free(&client);
    }
    http_close(http);
    fake_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_may_be_cut_anywhere),
        cmocka_unit_test(a_stream_cut_off_anywhere_fails_after_its_whole_lines),
        cmocka_unit_test(the_last_line_needs_no_newline_if_the_answer_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
