#include "tests/base/client.h"
#include "tests/fake_server.h"
#include "tests/support.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- whole answers ---- */

static void a_request_says_what_it_was_given(void **state)
{
    (void)state;
    struct fake_answer answer = {.bytes = FAKE_OK(5, "hello")};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http();
    struct client client = {0};
    auto_free char *url = client_url("http", fake_server_port(server), "/a?b=c");
    char body[] = "{\"x\":1}";
    client_send(&client, http,
                &(struct http_call){.method = "PATCH",
                                    .url = url,
                                    .body = body,
                                    .body_bytes = strlen(body),
                                    .content_type = "application/merge-patch+json",
                                    .bearer = "to.k-en",
                                    .user_agent = "shoal-test/1"});
    memset(body, 'x', sizeof body); /* it was copied */
    client_wait(&client);
    assert_ok(client.answer.err.code, &client.answer.err);
    assert_int_equal(client.answer.status, 200);
    assert_string_equal(str_text(&client.body), "hello");

    auto_free char *seen = fake_server_request(server, 0);
    static const char *const parts[] = {"PATCH /a?b=c HTTP/1.1\r\n",
                                        "\r\nContent-Type: application/merge-patch+json\r\n",
                                        "\r\nAuthorization: Bearer to.k-en\r\n",
                                        "\r\nUser-Agent: shoal-test/1\r\n",
                                        "\r\nContent-Length: 7\r\n",
                                        "\r\n\r\n{\"x\":1}"};
    for (size_t i = 0; i < array_length(parts); i++)
        if (!strstr(seen, parts[i]))
            fail_msg("no \"%s\" in: %s", parts[i], seen);
    client_free(&client);
    http_close(http);
    fake_server_close(server);
}

static void a_large_body_is_sent_without_asking_first(void **state)
{
    (void)state;
    enum { BYTES = 2 << 20 };
    static const struct fake_answer answer = {.bytes = FAKE_OK(2, "ok")};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct http *http = client_http();
    struct client client = {0};
    auto_free char *url = client_url("http", fake_server_port(server), "/");
    auto_free char *body = xmalloc(BYTES + 1);
    memset(body, 'b', BYTES);
    body[BYTES] = '\0';
    client_send(&client, http,
                &(struct http_call){.method = "POST",
                                    .url = url,
                                    .body = body,
                                    .body_bytes = BYTES,
                                    .content_type = "text/plain"});
    client_wait(&client);
    assert_string_equal(str_text(&client.body), "ok");
    auto_free char *seen = fake_server_request(server, 0);
    assert_null(strstr(seen, "Expect"));
    assert_string_equal(strstr(seen, "\r\n\r\n") + 4, body);
    client_free(&client);
    http_close(http);
    fake_server_close(server);
}

static void methods_do_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *method, *answer, *body;
    } rows[] = {
        {"GET", FAKE_OK(2, "ab"), "ab"},
        {"HEAD", FAKE_OK(2, ""), ""},
        {"DELETE", FAKE_OK(2, "cd"), "cd"},
        {"GET", "HTTP/1.1 204 No Content\r\n\r\n", ""},
        {"GET", FAKE_CHUNKED "2\r\nef\r\n1\r\ng\r\n0\r\n\r\n", "efg"},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", ""},
        {"GET", FAKE_OK(0, ""), ""},
        {"GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" FAKE_OK(1, "h"), "h"},
        {"GET", FAKE_CHUNKED "1\r\ni\r\n0\r\nTrailer: x\r\n\r\n", "i"},
    };
    struct fake_answer answers[array_length(rows)] = {0};
    for (size_t i = 0; i < array_length(rows); i++)
        answers[i].bytes = rows[i].answer;
    struct fake_server *server = fake_server_open(answers, array_length(rows), NULL);
    struct http *http = client_http();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct client client = {0};
        char start[32];
        auto_free char *url = client_url("http", fake_server_port(server), "/");
        client_send(&client, http, &(struct http_call){.method = rows[i].method, .url = url});
        client_wait(&client);
        assert_ok(client.answer.err.code, &client.answer.err);
        assert_string_equal(str_text(&client.body), rows[i].body);
        auto_free char *seen = fake_server_request(server, i);
        snprintf(start, sizeof start, "%s / HTTP/1.1\r\n", rows[i].method);
        assert_memory_equal(seen, start, strlen(start));
        client_free(&client);
    }
    /* all of them on one connection, which was kept */
    assert_int_equal(fake_server_connection_count(server), 1);
    http_close(http);
    fake_server_close(server);
}

static void refusals_are_answers_that_may_say_when_to_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        long status;
        int64_t retry_after_ms;
    } rows[] = {
        {"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nslow", 429,
         7000},
        {"HTTP/1.1 503 Unavailable\r\nretry-after: 0 \r\nContent-Length: 4\r\n\r\nslow", 503, 0},
        {"HTTP/1.1 429 No\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: "
         "4\r\n\r\nslow",
         429, -1},
        {"HTTP/1.1 429 No\r\nRetry-After: -5\r\nContent-Length: 4\r\n\r\nslow", 429, -1},
        {"HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999\r\nContent-Length: 4\r\n\r\nslow",
         429, -1},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nslow", 404, -1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fake_answer answer = {.bytes = rows[i].answer};
        struct fake_server *server = fake_server_open(&answer, 1, NULL);
        struct http *http = client_http();
        struct client client = {0};
        client_stream(&client, http, fake_server_port(server)); /* and it is no stream then */
        client_wait(&client);
        assert_ok(client.answer.err.code, &client.answer.err);
        assert_int_equal(client.answer.status, rows[i].status);
        assert_int_equal(client.answer.retry_after_ms, rows[i].retry_after_ms);
        assert_string_equal(str_text(&client.body), "slow");
        assert_int_equal(client.line_count, 0);
        client_free(&client);
        http_close(http);
        fake_server_close(server);
    }
}

/* ---- limits ---- */

static void what_is_larger_than_its_cap_fails(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        bool streamed;
        const char *lines, *error; /* NULL: succeeds */
    } rows[] = {
        {{.bytes = FAKE_OK(8, "12345678")}, false, "", NULL},
        {{.bytes = FAKE_OK(9, "123456789")}, false, "", "larger than 8 bytes"},
        {{.bytes = FAKE_CHUNKED "8\r\n12345678\r\n0\r\n\r\n"}, false, "", NULL},
        {{.bytes = FAKE_CHUNKED "8\r\n12345678\r\n1\r\n9\r\n", .then = FAKE_HOLD},
         false,
         "",
         "larger than 8 bytes"},
        {{.bytes = FAKE_CHUNKED "5\r\n1234\n\r\n5\r\nabcd\n\r\n0\r\n\r\n"},
         true,
         "1234|abcd|",
         NULL},
        {{.bytes = FAKE_CHUNKED "5\r\n1234\n\r\n6\r\nabcde\n\r\n2\r\nx\n\r\n0\r\n\r\n"},
         true,
         "1234|",
         "a line is longer than 4 bytes"},
        {{.bytes = FAKE_CHUNKED "5\r\n1234\n\r\n5\r\nabcde\r\n", .then = FAKE_HOLD},
         true,
         "1234|",
         "a line is longer than 4 bytes"},
        {{.bytes = FAKE_OK(10, "1234\nabcde")}, true, "1234|", "a line is longer than 4 bytes"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fake_server *server = fake_server_open(&rows[i].answer, 1, NULL);
        struct http *http = client_http_with(
            &(struct http_options){.max_body_bytes = 8, .max_line_bytes = 4, .max_in_flight = 1});
        struct client client = {0};
        if (rows[i].streamed)
            client_stream(&client, http, fake_server_port(server));
        else
            client_get(&client, http, fake_server_port(server), "/");
        client_wait(&client);
        assert_string_equal(str_text(&client.lines), rows[i].lines);
        if (rows[i].error)
            client_assert_fails(&client, ERR_LIMIT, rows[i].error);
        else
            assert_ok(client.answer.err.code, &client.answer.err);
        client_free(&client);
        http_close(http);
        fake_server_close(server);
    }
}

static void no_more_than_max_in_flight_go_out_in_order(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    static const struct fake_answer answer = {.bytes = FAKE_OK(2, "ok"), .pause = true};
    for (size_t most = 1; most <= 3; most += 2) {
        struct fake_server *server = fake_server_open(&answer, 1, NULL);
        struct http *http = client_http_with(&(struct http_options){
            .max_body_bytes = 64, .max_line_bytes = 64, .max_in_flight = most});
        struct client clients[COUNT] = {0};
        char path[16];
        for (int i = 0; i < COUNT; i++) {
            snprintf(path, sizeof path, "/%d/", i);
            client_get(&clients[i], http, fake_server_port(server), path);
        }
        while (fake_server_request_count(server) < most)
            client_poll(http, 10);
        assert_int_equal(http_in_flight(http), COUNT);
        for (int i = 0; i < COUNT; i++)
            fake_server_go(server);
        for (int i = 0; i < COUNT; i++)
            client_wait(&clients[i]);
        assert_int_equal(http_in_flight(http), 0);
        assert_int_equal(fake_server_most_at_once(server), most);
        for (size_t i = 0; most == 1 && i < COUNT; i++) {
            auto_free char *seen = fake_server_request(server, i);
            snprintf(path, sizeof path, "GET /%zu/ ", i);
            assert_memory_equal(seen, path, strlen(path));
        }
        for (int i = 0; i < COUNT; i++)
            client_free(&clients[i]);
        http_close(http);
        fake_server_close(server);
    }
}

static void what_is_urgent_does_not_wait(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = FAKE_CHUNKED, .then = FAKE_HOLD},
                                                 {.bytes = FAKE_OK(2, "ok")}};
    struct fake_server *server = fake_server_open(answers, 2, NULL);
    struct http *http = client_http_with(
        &(struct http_options){.max_body_bytes = 64, .max_line_bytes = 64, .max_in_flight = 1});
    struct client held = {0}, waiting = {0}, urgent = {0};
    client_get(&held, http, fake_server_port(server), "/held");
    while (fake_server_request_count(server) < 1)
        client_poll(http, 10);
    client_get(&waiting, http, fake_server_port(server), "/waiting");
    auto_free char *url = client_url("http", fake_server_port(server), "/urgent");
    client_send(&urgent, http, &(struct http_call){.method = "GET", .url = url, .urgent = true});
    client_wait(&urgent);
    assert_string_equal(str_text(&urgent.body), "ok");
    assert_int_equal(held.done + waiting.done, 0);
    assert_int_equal(fake_server_request_count(server), 2);
    http_close(http);
    client_free(&held);
    client_free(&waiting);
    client_free(&urgent);
    fake_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_what_it_was_given),
        cmocka_unit_test(a_large_body_is_sent_without_asking_first),
        cmocka_unit_test(methods_do_what_they_are),
        cmocka_unit_test(refusals_are_answers_that_may_say_when_to_come_back),
        cmocka_unit_test(what_is_larger_than_its_cap_fails),
        cmocka_unit_test(no_more_than_max_in_flight_go_out_in_order),
        cmocka_unit_test(what_is_urgent_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
