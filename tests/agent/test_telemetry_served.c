/* A run that is served by HTTP: its numbers, its page, and what is streamed. */
#include "tests/agent/run_fixture.h"
#include "tests/agent/served.h"
#include "tests/agent/telemetry_fixture.h"
#include "tests/exposition_check.h"
#include "tests/free_port.h"
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void the_run_is_served(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    int port = setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    assert_int_equal(telemetry_port(t), port);
    auto_free char *early = served_get(port, "/metrics");
    exposition_check(early);
    telemetry_fixture_run(t, 1, 3);
    auto_free char *metrics = served_get(port, "/metrics"), *status = served_get(port, "/status"),
                   *health = served_get(port, "/healthz");
    exposition_check(metrics);
    assert_true(exposition_check_value(metrics, "fsdp_train_step{job_name=\"llama\"}") == 3);
    struct json *object = json_parse_text(status, JSON_STRICT, NULL);
    assert_int_equal(json_as_integer(json_get(json_get(object, "last_step"), "step")), 3);
    json_free(object);
    assert_string_equal(health, "ok\n");
    auto_free char *page = served_get(port, "/"), *jobs = served_get(port, "/api/v1/jobs"),
                   *job = served_get(port, "/api/v1/jobs/local/llama");
    assert_non_null(strstr(page, "<title>Shoal</title>"));
    assert_non_null(strstr(jobs, "\"server\":\"agent\""));
    assert_non_null(strstr(job, "\"series\":{"));
    auto_free char *progress = served_get(port, "/progress");
    assert_non_null(strstr(progress, "\"step\":3,"));
    assert_null(strstr(progress, "hung"));
    telemetry_health(t, &(struct telemetry_health){.ranks_json = "[]",
                                                   .hung = 1,
                                                   .hung_rank = 5,
                                                   .hung_node = 2,
                                                   .last_hang = "{\"rank\":5,\"step\":3}"});
    auto_free char *hung = served_get(port, "/progress"); /* though no step has ended */
    object = json_parse_text(hung, JSON_STRICT, NULL);
    assert_int_equal(json_as_integer(json_get(object, "step")), 3);
    assert_int_equal(json_as_integer(json_get(object, "hungRank")), 5);
    assert_int_equal(json_as_integer(json_get(object, "hungNode")), 2);
    assert_int_equal(json_as_integer(json_get(json_get(object, "lastHang"), "rank")), 5);
    json_free(object);
    telemetry_health(t, &(struct telemetry_health){.ranks_json = "[{\"rank\":0}]",
                                                   .hung_rank = -1,
                                                   .hung_node = -1,
                                                   .last_hang = "{\"rank\":5,\"step\":3}"});
    auto_free char *since = served_get(port, "/status"); /* it is over, and told on */
    object = json_parse_text(since, JSON_STRICT, NULL);
    assert_int_equal(json_as_integer(json_get(json_get(object, "last_hang"), "step")), 3);
    assert_int_equal(json_array_count(json_get(object, "ranks")), 1);
    json_free(object);
    auto_free char *detail = served_get(port, "/progress/detail");
    object = json_parse_text(detail, JSON_STRICT, NULL);
    assert_int_equal(json_array_count(json_get(object, "ranks")), 1);
    assert_non_null(json_get(json_get(object, "memory"), "all"));
    json_free(object);
    auto_free char *over = served_get(port, "/progress");
    assert_null(strstr(over, "hungRank"));
    assert_non_null(strstr(over, ",\"lastHang\":{\"rank\":5,\"step\":3}}\n"));
    telemetry_close(t);
}

/* A name that its owner lets point to 127.0.0.1 makes a web page of this server's origin. */
static void a_page_of_another_name_cannot_read_the_run(void **state)
{
    (void)state;
    static const char *const paths[] = {"/metrics", "/status", "/healthz", "/steps"};
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    for (size_t i = 0; i < array_length(paths); i++) {
        auto_free char *request =
            xasprintf("GET %s HTTP/1.1\r\nHost: evil.example:%d\r\nConnection: close\r\n\r\n",
                      paths[i], setting.http_port);
        auto_close int fd = served_dial(setting.http_port, request);
        char answer[sizeof "HTTP/1.1 403 "] = "";
        assert_int_equal(recv(fd, answer, sizeof answer - 1, MSG_WAITALL), sizeof answer - 1);
        assert_string_equal(answer, "HTTP/1.1 403 ");
    }
    telemetry_close(t);
}

static char kept[PAGE_NOTE_BYTES];

static void keep(void *context, const char *note)
{
    (void)context;
    snprintf(kept, sizeof kept, "%s", note);
}

/* A process, and the one that is started in its place. */
static void a_page_goes_on_with_the_time_of_the_process_before(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    struct time_account account = time_account_open(RUN_FIXTURE_WALL_US + telemetry_fixture_us);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    setting.account = &account;
    setting.page.keep = keep;
    struct telemetry *t = telemetry_fixture_open(&setting);
    time_account_add(&account, TIME_STEP, RUN_FIXTURE_WALL_US + telemetry_fixture_us);
    telemetry_fixture_run(t, 1, 3);
    auto_free char *first = served_get(setting.http_port, "/api/v1/jobs/local/llama");
    time_account_add(&account, TIME_LOST_WORK, RUN_FIXTURE_WALL_US + telemetry_fixture_us);
    telemetry_failed(t, 138, "a peer was lost");
    telemetry_close(t);
    setting.page.note = kept;
    account = time_account_open(RUN_FIXTURE_WALL_US + telemetry_fixture_us);
    t = telemetry_fixture_open(&setting);
    auto_free char *second = served_get(setting.http_port, "/api/v1/jobs/local/llama"),
                   *progress = served_get(setting.http_port, "/progress");
    telemetry_close(t);
    struct json *before = json_parse_text(first, JSON_STRICT, NULL),
                *after = json_parse_text(second, JSON_STRICT, NULL);
    const char *since = json_as_text(json_get(after, "creationTimestamp"));
    assert_string_equal(since, json_as_text(json_get(before, "creationTimestamp")));
    const struct json *seconds = json_get(json_get(after, "training"), "seconds");
    assert_true(json_as_number(json_get(seconds, "step")) > 0);
    assert_true(json_as_number(json_get(seconds, "lostWork")) > 0);
    assert_true(json_as_number(json_get(seconds, "recovery")) > 0);
    assert_null(strstr(progress, "recovery")); /* that is the operator's, of what processes tell */
    json_free(before);
    json_free(after);
}

static void a_second_run_on_a_node_is_not_stopped(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    assert_int_equal(telemetry_port(t), setting.http_port);
    struct telemetry *other = telemetry_fixture_open(&setting);
    assert_int_equal(telemetry_port(other), 0);
    char url[TELEMETRY_URL_BYTES];
    telemetry_url(other, url);
    assert_string_equal(url, "");
    telemetry_fixture_run(other, 1, 1);
    telemetry_close(other);
    setting.http_port_moves = true;
    other = telemetry_fixture_open(&setting);
    assert_in_range(telemetry_port(other), setting.http_port + 1, setting.http_port + 64);
    telemetry_url(other, url);
    auto_free char *there = xasprintf("http://127.0.0.1:%d/", telemetry_port(other)),
                   *status = served_get(telemetry_port(other), "/status");
    assert_string_equal(url, there);
    telemetry_close(other);
    telemetry_close(t);
}

static void a_run_that_stands_still_is_not_healthy(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = free_port();
    setting.healthy_within_s = 0.001;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    bool is_late = false;
    while (!is_late) { /* after a millisecond */
        auto_str struct str all;
        served_exchange(setting.http_port, "/healthz", &all);
        is_late = !strncmp(str_text(&all), "HTTP/1.0 503 ", 13);
    }
    telemetry_close(t);
}

static void steps_are_streamed(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    const struct run_numbers numbers = run_fixture_numbers(1);
    telemetry_step(t, &numbers); /* the last message waits for who comes */
    auto_close int fd = served_listen(setting.http_port, "/steps");
    struct json *object = served_frame(fd);
    assert_int_equal(json_as_integer(json_get(object, "step")), 1);
    json_free(object);
    telemetry_fixture_run(t, 2, 3);
    for (int i = 2; i <= 5; i++) { /* steps 2 and 3, evaluation, save */
        object = served_frame(fd);
        assert_int_equal(json_as_integer(json_get(object, "step")), i < 3 ? i : 3);
        assert_int_equal(json_get(object, "loss") != NULL, i <= 3);
        assert_int_equal(json_get(object, "eval_loss") != NULL, i == 4);
        json_free(object);
    }
    telemetry_close(t);
}

static void who_looks_hears_of_ranks_while_the_loop_stands_still(void **state)
{
    (void)state;
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    auto_close int fd = served_listen(setting.http_port, "/live");
    struct json *first = served_frame(fd);
    int64_t version = json_as_integer(json_get(first, "version"));
    json_free(first);
    telemetry_fixture_us += 1000000;
    telemetry_health(
        t, &(struct telemetry_health){
               .ranks_json = "[]", .hung = 1, .hung_rank = 5, .hung_node = 2, .last_hang = ""});
    struct json *next = served_frame(fd), *row = json_take_at(json_get(next, "jobs"), 0);
    assert_int_equal(json_as_integer(json_get(next, "version")), version + 1);
    assert_string_equal(json_as_text(json_get(json_get(row, "waiting"), "reason")), "RankHung");
    json_free(row);
    json_free(next);
    telemetry_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_is_served),
        cmocka_unit_test(a_page_of_another_name_cannot_read_the_run),
        cmocka_unit_test(a_page_goes_on_with_the_time_of_the_process_before),
        cmocka_unit_test(a_second_run_on_a_node_is_not_stopped),
        cmocka_unit_test(a_run_that_stands_still_is_not_healthy),
        cmocka_unit_test(steps_are_streamed),
        cmocka_unit_test(who_looks_hears_of_ranks_while_the_loop_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
