/* The asker on real sockets: whom it asks, how often, and what it does with what a pod may
 * answer. */
#include "base/mem.h"
#include "base/str.h"
#include "tests/operator/progress/asker_fixture.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void an_agent_is_asked_once_an_interval(void **state)
{
    (void)state;
    /* the server would keep the connection */
    static const struct fake_answer answers[] = {{.bytes = FAKE_OK(66, NUMBERS("1"))},
                                                 {.bytes = FAKE_OK(66, NUMBERS("1"))},
                                                 {.bytes = FAKE_OK(66, NUMBERS("2"))}};
    struct asker_fixture f;
    asker_open_fixture(&f, answers, array_length(answers));
    assert_null(asker_heard(f.asker, "ns/j"));
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(asker_requests(&f), 1);
    auto_free char *request = fake_server_request(f.server, 0);
    assert_non_null(strstr(request, "GET /progress HTTP/1.1\r\n"));
    assert_null(strstr(request, "Authorization"));
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    assert_int_equal(f.news, 1);
    for (int i = 0; i < 10; i++) /* each pass over the job says the same */
        asker_follow(f.asker, "ns/j", &f.snapshot);
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(asker_requests(&f), 2);
    assert_int_equal(f.news, 1); /* nothing new */
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(f.news, 2);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 2);
    assert_int_equal(fake_server_connection_count(f.server), 3); /* none is kept */
    assert_int_equal(asker_asks(f.asker), 3);
    assert_int_equal(asker_unanswered(f.asker), 0);
    asker_close_fixture(&f);
}

/* What the status has by now is not kept beside it, and is no news when it is told again. Where
 * somebody has taken it out of the status, it is. */
static void what_the_status_has_is_let_go(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = FAKE_OK(66, NUMBERS("1"))}};
    struct asker_fixture f;
    asker_open_fixture(&f, answers, array_length(answers));
    asker_pass(&f, ASKER_EVERY_MS);
    training_merge(&f.status.training, asker_heard(f.asker, "ns/j"));
    f.status.training.eval_loss = 2.5; /* of before: it stays */
    f.status.training.step = 0;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    f.status.training.step = 1;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    assert_null(asker_heard(f.asker, "ns/j"));
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(asker_requests(&f), 2);
    assert_int_equal(f.news, 1);
    f.status.training.known = false;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(f.news, 2);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    asker_close_fixture(&f);
}

/* Whoever else listens there is asked once, until another process may listen there. */
static void what_is_no_agent_costs_one_ask(void **state)
{
    (void)state;
    auto_str struct str huge;
    str_init(&huge, 1 << 22);
    str_add(&huge, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"x\":\"");
    for (int i = 0; i < 1 << 16; i++)
        str_add(&huge, "0123456789abcdef");
    const struct fake_answer strangers[] = {
        HTTP("404 Not Found", "{}"),
        HTTP("403 Forbidden", NUMBERS("1")),
        HTTP("302 Found", ""),
        HTTP("200 OK", "<html>"),
        HTTP("200 OK", ""),
        HTTP("200 OK", "{\"step\":NaN}"),
        {.bytes = str_text(&huge), .then = FAKE_CLOSE},
    };
    for (size_t i = 0; i < array_length(strangers); i++) {
        struct asker_fixture f;
        asker_open_fixture(&f, &strangers[i], 1);
        asker_pass(&f, 20 * ASKER_EVERY_MS);
        if (asker_requests(&f) != 1)
            fail_msg("answer %zu: %d asks", i, asker_requests(&f));
        assert_null(asker_heard(f.asker, "ns/j"));
        assert_int_equal(f.news, 1); /* that it is quiet */
        assert_true(asker_is_quiet(f.asker, "ns/j"));
        f.pod.restart_count++;
        asker_follow(f.asker, "ns/j", &f.snapshot);
        assert_false(asker_is_quiet(f.asker, "ns/j"));
        asker_pass(&f, ASKER_EVERY_MS);
        assert_int_equal(asker_requests(&f), 2);
        f.pod.uid = "u2";
        asker_follow(f.asker, "ns/j", &f.snapshot);
        asker_pass(&f, ASKER_EVERY_MS);
        assert_int_equal(asker_requests(&f), 3);
        asker_close_fixture(&f);
    }
}

/* ... and when they are as rare as they get, it is told once what may refuse them: an agent that
 * starts listens by then. */
static void where_nobody_listens_asks_become_rare(void **state)
{
    (void)state;
    struct asker_fixture f;
    char text[4096];
    support_stderr_begin();
    asker_open_fixture(&f, NULL, 0);
    asker_pass(&f, 7 * 60 * 1000);
    support_stderr_end(text, sizeof text);
    assert_int_equal(f.news, 0);
    assert_null(strstr(text, "NetworkPolicy"));
    support_stderr_begin();
    asker_pass(&f, 53 * 60 * 1000);
    f.pod.restart_count++;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    asker_pass(&f, 3600 * 1000);
    support_stderr_end(text, sizeof text);
    assert_in_range(asker_asks(f.asker), 18, 24);
    assert_int_equal(asker_unanswered(f.asker), asker_asks(f.asker));
    assert_int_equal(f.news, 2);
    assert_true(asker_is_quiet(f.asker, "ns/j"));
    const char *told = strstr(text, "refused all connections");
    assert_non_null(told);
    assert_non_null(strstr(told, "does a NetworkPolicy reject them?"));
    assert_null(strstr(told + 1, "refused all connections"));
    asker_close_fixture(&f);
}

/* An agent that is gone is asked on, and whose silence is told is told to be back. */
static void an_agent_that_is_gone_is_quiet(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = FAKE_OK(66, NUMBERS("1"))},
                                                 HTTP("503 Service Unavailable", ""),
                                                 HTTP("503 Service Unavailable", ""),
                                                 HTTP("503 Service Unavailable", ""),
                                                 {.bytes = FAKE_OK(66, NUMBERS("1"))}};
    struct asker_fixture f;
    asker_open_fixture(&f, answers, array_length(answers));
    asker_pass(&f, 2 * ASKER_EVERY_MS);
    assert_int_equal(f.news, 1);
    assert_false(asker_is_quiet(f.asker, "ns/j")); /* one is a busy node */
    asker_pass(&f, ASKER_EVERY_MS);
    assert_true(asker_is_quiet(f.asker, "ns/j"));
    assert_int_equal(f.news, 2);
    asker_pass(&f, ASKER_EVERY_MS);
    assert_int_equal(f.news, 2);
    asker_pass(&f, ASKER_EVERY_MS); /* tells the same as before */
    assert_int_equal(asker_requests(&f), 5);
    assert_false(asker_is_quiet(f.asker, "ns/j"));
    assert_int_equal(f.news, 3);
    asker_close_fixture(&f);
}

/* Another operator heard it in this container: for this one, too, two asks are enough. */
static void an_agent_is_known_by_the_status(void **state)
{
    (void)state;
    for (int in_this_container = 0; in_this_container < 2; in_this_container++) {
        struct asker_fixture f;
        asker_open_fixture(&f, NULL, 0);
        asker_forget_all(f.asker);
        f.pod.started_ms = 50000;
        f.status.training = training_open();
        f.status.training.process_ms = in_this_container ? 49000 : 40000;
        asker_follow(f.asker, "ns/j", &f.snapshot);
        asker_pass(&f, 3 * ASKER_EVERY_MS);
        assert_int_equal(asker_is_quiet(f.asker, "ns/j"), in_this_container);
        asker_close_fixture(&f);
    }
}

/* Words come with a hang, and go with what is told without one. */
static void words_of_a_hang_are_heard(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {
        HTTP("200 OK", "{\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:00Z\",\"step\":1,"
                       "\"lastHang\":{\"rank\":1,\"time\":\"2026-01-01T00:00:09Z\","
                       "\"pod\":\"j-worker-0\",\"phase\":\"step\",\"unit\":\"layers.3\"}}"),
        HTTP("200 OK", NUMBERS("2"))};
    struct asker_fixture f;
    asker_open_fixture(&f, answers, array_length(answers));
    asker_pass(&f, 2 * ASKER_EVERY_MS);
    asker_pass(&f, 1000);
    const struct training *heard = asker_heard(f.asker, "ns/j");
    assert_int_equal(heard->step, 2);
    assert_string_equal(heard->hang.pod, "");
    asker_close_fixture(&f);
    asker_open_fixture(&f, answers, 1);
    asker_pass(&f, ASKER_EVERY_MS);
    heard = asker_heard(f.asker, "ns/j");
    assert_int_equal(heard->hang_rank, 1);
    assert_string_equal(heard->hang.pod, "j-worker-0");
    assert_string_equal(heard->hang.phase, "step");
    assert_string_equal(heard->hang.op, "");
    assert_string_equal(heard->hang.unit, "layers.3");
    asker_close_fixture(&f);
}

/* A second is all that one who does not answer gets; it is told once of what may be in the way. */
static void who_hangs_holds_up_nobody(void **state)
{
    (void)state;
    static const struct fake_answer hangs[] = {
        {.bytes = "HTTP/1.1 200 OK\r\n\r\n{", .then = FAKE_HOLD}};
    struct asker_fixture f;
    char text[4096];
    support_stderr_begin();
    asker_open_patient(&f, hangs, 1, 50);
    asker_pass(&f, 8 * ASKER_EVERY_MS);
    support_stderr_end(text, sizeof text);
    assert_int_equal(asker_asks(f.asker), 4);
    const char *told = strstr(text, "does a NetworkPolicy forbid it?");
    assert_non_null(told);
    assert_null(strstr(told + 1, "does a NetworkPolicy"));
    asker_close_fixture(&f);
}

static void only_a_pod_that_runs_is_asked(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {HTTP("200 OK", NUMBERS("1"))};
    static const struct {
        struct pod pod;
        bool finished, asked;
    } rows[] = {
        {{.phase = POD_RUNNING}, false, true},
        {{.phase = POD_PENDING}, false, false},
        {{.phase = POD_SUCCEEDED}, false, false},
        {{.phase = POD_RUNNING, .deleted_ms = 1}, false, false},
        {{.phase = POD_RUNNING, .node_lost_ms = 1}, false, false},
        {{.phase = POD_RUNNING, .index = 1}, false, false},
        {{.phase = POD_RUNNING, .type = REPLICA_WORKER}, false, false},
        {{.phase = POD_RUNNING}, true, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct asker_fixture f;
        asker_open_fixture(&f, answers, 1);
        f.pod.phase = rows[i].pod.phase;
        f.pod.deleted_ms = rows[i].pod.deleted_ms;
        f.pod.node_lost_ms = rows[i].pod.node_lost_ms;
        f.pod.index = rows[i].pod.index;
        f.pod.type = rows[i].pod.type == REPLICA_WORKER ? REPLICA_WORKER : REPLICA_MASTER;
        if (rows[i].finished)
            f.status.conditions[f.status.condition_count++] =
                (struct condition){.type = CONDITION_SUCCEEDED, .status = true};
        asker_follow(f.asker, "ns/j", &f.snapshot);
        asker_pass(&f, ASKER_EVERY_MS);
        if (asker_requests(&f) != (int)rows[i].asked)
            fail_msg("row %zu: %d asks", i, asker_requests(&f));
        asker_close_fixture(&f);
    }
}

static void a_job_that_goes_cancels_its_ask(void **state)
{
    (void)state;
    static const struct fake_answer hangs[] = {{.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    struct asker_fixture f;
    struct error err;
    asker_open_fixture(&f, hangs, 1);
    for (; http_in_flight(f.http) == 0; asker_now_ms += 1000)
        asker_tick(f.asker, 0);
    assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
    asker_follow(f.asker, "ns/j", NULL);
    assert_int_equal(http_in_flight(f.http), 0);
    assert_int_equal(asker_tick(f.asker, 0), INT64_MAX);
    asker_follow(f.asker, "ns/j", &f.snapshot);
    asker_forget_all(f.asker);
    assert_int_equal(asker_tick(f.asker, 0), INT64_MAX);
    asker_close_fixture(&f);
}

/* No more than so many are asked at once, however many jobs there are, and nobody for news that
 * could not be written. */
static void asks_at_once_are_few(void **state)
{
    (void)state;
    static const struct fake_answer hangs[] = {{.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    static const struct {
        size_t writes;
        int in_flight; /* then */
    } rows[] = {{100, 0},
                {ASKER_IN_FLIGHT_MAX, 0},
                {ASKER_IN_FLIGHT_MAX - 1, 1},
                {5, ASKER_IN_FLIGHT_MAX - 5},
                {ASKER_IN_FLIGHT_MAX, ASKER_IN_FLIGHT_MAX - 5},
                {0, ASKER_IN_FLIGHT_MAX}};
    struct asker_fixture f;
    asker_open_fixture(&f, hangs, 1);
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof key, "ns/j-%d", i);
        asker_follow(f.asker, key, &f.snapshot);
    }
    asker_now_ms += ASKER_EVERY_MS;
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_int_equal(asker_tick(f.asker, rows[i].writes), INT64_MAX);
        assert_int_equal(http_in_flight(f.http), rows[i].in_flight);
    }
    asker_close_fixture(&f);
}

static void who_asks_never_has_no_asker(void **state)
{
    (void)state;
    struct error err;
    struct http *http;
    assert_ok(http_open(&http, &asker_http, &err), &err);
    assert_null(asker_open(&(struct asker_options){.http = http, .clocks = &asker_clocks}));
    assert_null(asker_open(
        &(struct asker_options){.interval_ms = ASKER_EVERY_MS, .clocks = &asker_clocks}));
    http_close(http);
}

int main(void)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* is no way to a pod */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_is_asked_once_an_interval),
        cmocka_unit_test(what_the_status_has_is_let_go),
        cmocka_unit_test(what_is_no_agent_costs_one_ask),
        cmocka_unit_test(where_nobody_listens_asks_become_rare),
        cmocka_unit_test(an_agent_that_is_gone_is_quiet),
        cmocka_unit_test(an_agent_is_known_by_the_status),
        cmocka_unit_test(words_of_a_hang_are_heard),
        cmocka_unit_test(who_hangs_holds_up_nobody),
        cmocka_unit_test(only_a_pod_that_runs_is_asked),
        cmocka_unit_test(a_job_that_goes_cancels_its_ask),
        cmocka_unit_test(asks_at_once_are_few),
        cmocka_unit_test(who_asks_never_has_no_asker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
