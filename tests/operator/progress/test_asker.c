/* The asker on real sockets: whom it asks, how often, and what it does with what a pod may
 * answer. */
#include "operator/progress/asker.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/fake_server.h"
#include "tests/free_port.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 15000 };

#define NUMBERS(step)                                                                              \
    "{\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:00Z\",\"step\":" step "}"
#define HTTP(status, body)                                                                         \
    {                                                                                              \
        .bytes = "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n" body, .then = FAKE_CLOSE       \
    }

static int64_t test_now_ms;

static int64_t now_ms(void)
{
    return test_now_ms;
}

static const struct clocks test_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

struct fixture {
    struct http *http;
    struct fake_server *server;
    struct asker *asker;
    int news, details;
    struct job job;
    struct job_status status;
    struct pod pod;
    struct snapshot snapshot;
};

static void on_news(void *context, const char *key)
{
    struct fixture *f = context;
    assert_string_equal(key, "ns/j");
    f->news++;
}

static void on_detail(void *context, const char *key, const char *text, size_t bytes)
{
    struct fixture *f = context;
    assert_string_equal(key, "ns/j");
    assert_int_equal(strlen(text), bytes);
    assert_string_equal(text, "{\"ranks\":[]}");
    f->details++;
}

static const struct http_options http_options = {.max_body_bytes = 1 << 20,
                                                 .max_line_bytes = 1 << 20,
                                                 .max_in_flight = 16,
                                                 .connect_timeout_ms = 10000};

static void open_patient(struct fixture *f, const struct fake_answer *answers, size_t count,
                         int timeout_ms)
{
    struct error err;
    *f = (struct fixture){.news = 0};
    test_now_ms = 1000000;
    assert_ok(http_open(&f->http, &http_options, &err), &err);
    if (count)
        f->server = fake_server_open(answers, count, NULL);
    const struct asker_options options = {.http = f->http,
                                          .interval_ms = EVERY,
                                          .timeout_ms = timeout_ms,
                                          .clocks = &test_clocks,
                                          .news = on_news,
                                          .detail = on_detail,
                                          .context = f};
    f->asker = asker_open(&options);
    f->job = (struct job){.name = "j", .namespace_ = "ns", .uid = "job"};
    f->job.replicas[REPLICA_MASTER].present = true;
    f->pod = (struct pod){.name = "j-master-0",
                          .uid = "u1",
                          .owner_uid = "job",
                          .type = REPLICA_MASTER,
                          .phase = POD_RUNNING,
                          .address = "127.0.0.1",
                          .training_port = f->server ? fake_server_port(f->server) : free_port()};
    f->snapshot =
        (struct snapshot){.job = &f->job, .status = &f->status, .pods = &f->pod, .pod_count = 1};
    asker_follow(f->asker, "ns/j", &f->snapshot);
}

/* However slow the machine: whoever answers is heard. */
static void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count)
{
    open_patient(f, answers, count, SUPPORT_PATIENCE_MS);
}

static void close_fixture(struct fixture *f)
{
    asker_close(f->asker);
    http_close(f->http);
    if (f->server)
        fake_server_close(f->server);
}

static int requests(const struct fixture *f)
{
    return (int)fake_server_request_count(f->server);
}

/* So much time passes, in steps; what is asked then is answered. */
static void pass(struct fixture *f, int64_t ms)
{
    struct error err;
    for (int64_t end_ms = test_now_ms + ms; test_now_ms < end_ms; test_now_ms += 1000) {
        asker_tick(f->asker, 0);
        while (http_in_flight(f->http) > 0)
            assert_ok(http_poll(f->http, NULL, 0, 20, &err), &err);
    }
}

static void an_agent_is_asked_once_an_interval(void **state)
{
    (void)state;
    /* the server would keep the connection */
    static const struct fake_answer answers[] = {{.bytes = FAKE_OK(66, NUMBERS("1"))},
                                                 {.bytes = FAKE_OK(66, NUMBERS("1"))},
                                                 {.bytes = FAKE_OK(66, NUMBERS("2"))}};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    assert_null(asker_heard(f.asker, "ns/j"));
    pass(&f, EVERY);
    assert_int_equal(requests(&f), 1);
    auto_free char *request = fake_server_request(f.server, 0);
    assert_non_null(strstr(request, "GET /progress HTTP/1.1\r\n"));
    assert_null(strstr(request, "Authorization"));
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    assert_int_equal(f.news, 1);
    for (int i = 0; i < 10; i++) /* each pass over the job says the same */
        asker_follow(f.asker, "ns/j", &f.snapshot);
    pass(&f, EVERY);
    assert_int_equal(requests(&f), 2);
    assert_int_equal(f.news, 1); /* nothing new */
    pass(&f, EVERY);
    assert_int_equal(f.news, 2);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 2);
    assert_int_equal(fake_server_connection_count(f.server), 3); /* none is kept */
    assert_int_equal(asker_asks(f.asker), 3);
    assert_int_equal(asker_unanswered(f.asker), 0);
    close_fixture(&f);
}

/* What the status has by now is not kept beside it, and is no news when it is told again. Where
 * somebody has taken it out of the status, it is. */
static void what_the_status_has_is_let_go(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {{.bytes = FAKE_OK(66, NUMBERS("1"))}};
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    pass(&f, EVERY);
    training_merge(&f.status.training, asker_heard(f.asker, "ns/j"));
    f.status.training.eval_loss = 2.5; /* of before: it stays */
    f.status.training.step = 0;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    f.status.training.step = 1;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    assert_null(asker_heard(f.asker, "ns/j"));
    pass(&f, EVERY);
    assert_int_equal(requests(&f), 2);
    assert_int_equal(f.news, 1);
    f.status.training.known = false;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    pass(&f, EVERY);
    assert_int_equal(f.news, 2);
    assert_int_equal(asker_heard(f.asker, "ns/j")->step, 1);
    close_fixture(&f);
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
        struct fixture f;
        open_fixture(&f, &strangers[i], 1);
        pass(&f, 20 * EVERY);
        if (requests(&f) != 1)
            fail_msg("answer %zu: %d asks", i, requests(&f));
        assert_null(asker_heard(f.asker, "ns/j"));
        assert_int_equal(f.news, 1); /* that it is quiet */
        assert_true(asker_is_quiet(f.asker, "ns/j"));
        f.pod.restart_count++;
        asker_follow(f.asker, "ns/j", &f.snapshot);
        assert_false(asker_is_quiet(f.asker, "ns/j"));
        pass(&f, EVERY);
        assert_int_equal(requests(&f), 2);
        f.pod.uid = "u2";
        asker_follow(f.asker, "ns/j", &f.snapshot);
        pass(&f, EVERY);
        assert_int_equal(requests(&f), 3);
        close_fixture(&f);
    }
}

/* What is answered to so many looks, a second apart, at a job whose agent was heard. */
static void details_are_asked_for_by_who_looks(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        int details, asks;
    } rows[] = {
        {HTTP("200 OK", "{\"ranks\":[]}"), 3, 3},
        {HTTP("404 Not Found", "404 not found\n"), 0, 1}, /* an agent of before */
        {HTTP("302 Found", ""), 0, 1},
        {HTTP("503 Service Unavailable", ""), 0, 3}, /* it may start again */
        {{.bytes = "HTTP/1.1 200 OK\r\n", .then = FAKE_CLOSE}, 0, 3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct fake_answer answers[] = {HTTP("200 OK", NUMBERS("1")), rows[i].answer,
                                              rows[i].answer, rows[i].answer};
        struct fixture f;
        open_fixture(&f, answers, array_length(answers));
        asker_ask_detail(f.asker, "ns/j"); /* nobody was heard yet */
        asker_ask_detail(f.asker, "ns/other");
        pass(&f, EVERY);
        assert_int_equal(requests(&f), 1);
        for (int look = 0; look < 3; look++) {
            asker_ask_detail(f.asker, "ns/j");
            asker_ask_detail(f.asker, "ns/j"); /* one is under way */
            struct error err;
            while (http_in_flight(f.http) > 0)
                assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
        }
        if (f.details != rows[i].details || requests(&f) != 1 + rows[i].asks)
            fail_msg("row %zu: %d details of %d asks", i, f.details, requests(&f) - 1);
        auto_free char *request = fake_server_request(f.server, 1);
        assert_non_null(strstr(request, "GET /progress/detail HTTP/1.1\r\n"));
        assert_int_equal(asker_asks(f.asker), requests(&f));
        assert_int_equal(asker_unanswered(f.asker), rows[i].asks - rows[i].details);
        assert_int_equal(f.news, 1);
        f.pod.restart_count++; /* another process may know them */
        asker_follow(f.asker, "ns/j", &f.snapshot);
        asker_ask_detail(f.asker, "ns/j");
        assert_int_equal(http_in_flight(f.http), 0);
        close_fixture(&f);
    }
}

/* ... and when they are as rare as they get, it is told once what may refuse them: an agent that
 * starts listens by then. */
static void where_nobody_listens_asks_become_rare(void **state)
{
    (void)state;
    struct fixture f;
    char text[4096];
    support_stderr_begin();
    open_fixture(&f, NULL, 0);
    pass(&f, 7 * 60 * 1000);
    support_stderr_end(text, sizeof text);
    assert_int_equal(f.news, 0);
    assert_null(strstr(text, "NetworkPolicy"));
    support_stderr_begin();
    pass(&f, 53 * 60 * 1000);
    f.pod.restart_count++;
    asker_follow(f.asker, "ns/j", &f.snapshot);
    pass(&f, 3600 * 1000);
    support_stderr_end(text, sizeof text);
    assert_in_range(asker_asks(f.asker), 18, 24);
    assert_int_equal(asker_unanswered(f.asker), asker_asks(f.asker));
    assert_int_equal(f.news, 2);
    assert_true(asker_is_quiet(f.asker, "ns/j"));
    const char *told = strstr(text, "refused all connections");
    assert_non_null(told);
    assert_non_null(strstr(told, "does a NetworkPolicy reject them?"));
    assert_null(strstr(told + 1, "refused all connections"));
    close_fixture(&f);
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
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    pass(&f, 2 * EVERY);
    assert_int_equal(f.news, 1);
    assert_false(asker_is_quiet(f.asker, "ns/j")); /* one is a busy node */
    pass(&f, EVERY);
    assert_true(asker_is_quiet(f.asker, "ns/j"));
    assert_int_equal(f.news, 2);
    pass(&f, EVERY);
    assert_int_equal(f.news, 2);
    pass(&f, EVERY); /* tells the same as before */
    assert_int_equal(requests(&f), 5);
    assert_false(asker_is_quiet(f.asker, "ns/j"));
    assert_int_equal(f.news, 3);
    close_fixture(&f);
}

/* Another operator heard it in this container: for this one, too, two asks are enough. */
static void an_agent_is_known_by_the_status(void **state)
{
    (void)state;
    for (int in_this_container = 0; in_this_container < 2; in_this_container++) {
        struct fixture f;
        open_fixture(&f, NULL, 0);
        asker_forget_all(f.asker);
        f.pod.started_ms = 50000;
        f.status.training = training_open();
        f.status.training.process_ms = in_this_container ? 49000 : 40000;
        asker_follow(f.asker, "ns/j", &f.snapshot);
        pass(&f, 3 * EVERY);
        assert_int_equal(asker_is_quiet(f.asker, "ns/j"), in_this_container);
        close_fixture(&f);
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
    struct fixture f;
    open_fixture(&f, answers, array_length(answers));
    pass(&f, 2 * EVERY);
    pass(&f, 1000);
    const struct training *heard = asker_heard(f.asker, "ns/j");
    assert_int_equal(heard->step, 2);
    assert_string_equal(heard->hang.pod, "");
    close_fixture(&f);
    open_fixture(&f, answers, 1);
    pass(&f, EVERY);
    heard = asker_heard(f.asker, "ns/j");
    assert_int_equal(heard->hang_rank, 1);
    assert_string_equal(heard->hang.pod, "j-worker-0");
    assert_string_equal(heard->hang.phase, "step");
    assert_string_equal(heard->hang.op, "");
    assert_string_equal(heard->hang.unit, "layers.3");
    close_fixture(&f);
}

/* A second is all that one who does not answer gets; it is told once of what may be in the way. */
static void who_hangs_holds_up_nobody(void **state)
{
    (void)state;
    static const struct fake_answer hangs[] = {
        {.bytes = "HTTP/1.1 200 OK\r\n\r\n{", .then = FAKE_HOLD}};
    struct fixture f;
    char text[4096];
    support_stderr_begin();
    open_patient(&f, hangs, 1, 50);
    pass(&f, 8 * EVERY);
    support_stderr_end(text, sizeof text);
    assert_int_equal(asker_asks(f.asker), 4);
    const char *told = strstr(text, "does a NetworkPolicy forbid it?");
    assert_non_null(told);
    assert_null(strstr(told + 1, "does a NetworkPolicy"));
    close_fixture(&f);
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
        struct fixture f;
        open_fixture(&f, answers, 1);
        f.pod.phase = rows[i].pod.phase;
        f.pod.deleted_ms = rows[i].pod.deleted_ms;
        f.pod.node_lost_ms = rows[i].pod.node_lost_ms;
        f.pod.index = rows[i].pod.index;
        f.pod.type = rows[i].pod.type == REPLICA_WORKER ? REPLICA_WORKER : REPLICA_MASTER;
        if (rows[i].finished)
            f.status.conditions[f.status.condition_count++] =
                (struct condition){.type = CONDITION_SUCCEEDED, .status = true};
        asker_follow(f.asker, "ns/j", &f.snapshot);
        pass(&f, EVERY);
        if (requests(&f) != (int)rows[i].asked)
            fail_msg("row %zu: %d asks", i, requests(&f));
        close_fixture(&f);
    }
}

static void a_job_that_goes_cancels_its_ask(void **state)
{
    (void)state;
    static const struct fake_answer hangs[] = {{.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    struct fixture f;
    struct error err;
    open_fixture(&f, hangs, 1);
    for (; http_in_flight(f.http) == 0; test_now_ms += 1000)
        asker_tick(f.asker, 0);
    assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
    asker_follow(f.asker, "ns/j", NULL);
    assert_int_equal(http_in_flight(f.http), 0);
    assert_int_equal(asker_tick(f.asker, 0), INT64_MAX);
    asker_follow(f.asker, "ns/j", &f.snapshot);
    asker_forget_all(f.asker);
    assert_int_equal(asker_tick(f.asker, 0), INT64_MAX);
    close_fixture(&f);
}

/* Likewise one for details. */
static void a_job_that_goes_cancels_the_ask_for_details(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {HTTP("200 OK", NUMBERS("1")),
                                                 {.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    struct fixture f;
    struct error err;
    open_fixture(&f, answers, array_length(answers));
    pass(&f, EVERY);
    asker_ask_detail(f.asker, "ns/j");
    assert_int_equal(http_in_flight(f.http), 1);
    assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
    asker_forget_all(f.asker);
    assert_int_equal(http_in_flight(f.http), 0);
    assert_int_equal(f.details, 0);
    close_fixture(&f);
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
    struct fixture f;
    open_fixture(&f, hangs, 1);
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof key, "ns/j-%d", i);
        asker_follow(f.asker, key, &f.snapshot);
    }
    test_now_ms += EVERY;
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_int_equal(asker_tick(f.asker, rows[i].writes), INT64_MAX);
        assert_int_equal(http_in_flight(f.http), rows[i].in_flight);
    }
    close_fixture(&f);
}

static void who_asks_never_has_no_asker(void **state)
{
    (void)state;
    struct error err;
    struct http *http;
    assert_ok(http_open(&http, &http_options, &err), &err);
    assert_null(asker_open(&(struct asker_options){.http = http, .clocks = &test_clocks}));
    assert_null(asker_open(&(struct asker_options){.interval_ms = EVERY, .clocks = &test_clocks}));
    http_close(http);
}

#define LEFT_OF(began, step, time)                                                                 \
    "{\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:" time "Z\",\"step\":" step          \
    ",\"processStartTime\":\"2026-01-01T00:00:" began "Z\",\"seconds\":{\"step\":5}}"
#define LEFT(step, time) LEFT_OF("01", step, time)

/* What the last container left behind counts if it is newer than what is known. */
static void the_newest_numbers_count(void **state)
{
    (void)state;
    static const struct {
        const char *left;
        int64_t shown_ms; /* seconds of that minute; -1: nothing is shown */
        int heard_s;      /* likewise */
        int step;         /* -1: no news */
    } rows[] = {
        {NULL, -1, -1, -1},
        {LEFT("7", "20"), -1, -1, 7},
        {LEFT("7", "20"), 10, -1, 7},
        {LEFT("7", "20"), 20, -1, -1},
        {LEFT("7", "20"), 30, -1, -1},
        {LEFT("7", "20"), -1, 10, 7},
        {LEFT("7", "20"), -1, 30, 3},
        {"Error: out of memory", -1, -1, -1},
        {"{}", -1, 10, 3},
        {NULL, 30, 10, 3},
        /* within the second, of the same process: further, or with more time spent */
        {LEFT_OF("00", "7", "20"), -1, 20, 7},
        {LEFT_OF("00", "3", "20"), -1, 20, 3},
        {LEFT_OF("00", "2", "20"), -1, 20, 3},
        {LEFT("7", "20"), -1, 20, 3},
        {LEFT_OF("00", "4", "20"), 20, -1, 4},
        {LEFT_OF("00", "3", "20"), 20, -1, 3},
        {LEFT_OF("00", "2", "20"), 20, -1, -1},
    };
    struct fixture f;
    open_fixture(&f, NULL, 0);
    for (size_t i = 0; i < array_length(rows); i++) {
        const int64_t minute_ms = INT64_C(1767225600000);
        struct training heard = training_open(), newest;
        heard.step = 3;
        heard.process_ms = minute_ms;
        heard.progress_ms = minute_ms + 1000 * rows[i].heard_s;
        f.status.training = heard;
        f.status.training.known = rows[i].shown_ms >= 0;
        f.status.training.progress_ms =
            rows[i].shown_ms >= 0 ? minute_ms + 1000 * rows[i].shown_ms : 0;
        f.pod.last_line = rows[i].left;
        bool found = ask_target_newest(&f.snapshot, rows[i].heard_s >= 0 ? &heard : NULL, &newest);
        if ((found ? newest.step : -1) != rows[i].step)
            fail_msg("row %zu: step %d", i, found ? (int)newest.step : -1);
    }
    close_fixture(&f);
}

int main(void)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* is no way to a pod */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_is_asked_once_an_interval),
        cmocka_unit_test(what_the_status_has_is_let_go),
        cmocka_unit_test(what_is_no_agent_costs_one_ask),
        cmocka_unit_test(details_are_asked_for_by_who_looks),
        cmocka_unit_test(where_nobody_listens_asks_become_rare),
        cmocka_unit_test(an_agent_that_is_gone_is_quiet),
        cmocka_unit_test(an_agent_is_known_by_the_status),
        cmocka_unit_test(words_of_a_hang_are_heard),
        cmocka_unit_test(who_hangs_holds_up_nobody),
        cmocka_unit_test(only_a_pod_that_runs_is_asked),
        cmocka_unit_test(a_job_that_goes_cancels_its_ask),
        cmocka_unit_test(a_job_that_goes_cancels_the_ask_for_details),
        cmocka_unit_test(asks_at_once_are_few),
        cmocka_unit_test(who_asks_never_has_no_asker),
        cmocka_unit_test(the_newest_numbers_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
