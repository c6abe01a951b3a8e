#include "tests/agent/event_reader.h"
#include "tests/agent/run_fixture.h"
#include "tests/agent/served.h"
#include "tests/exposition_check.h"
#include "tests/free_port.h"
#include "tests/support.h"

#include "agent/telemetry/telemetry.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The tests' clock: a second goes by between two looks. */
static int64_t clock_us;
static int64_t tick_us(void)
{
    return RUN_FIXTURE_WALL_US + (clock_us += 1000000);
}

static struct telemetry_setting setting_in(FILE *out)
{
    clock_us = 0;
    return (struct telemetry_setting){
        .facts = run_fixture_facts(),
        .lines = {.style = STYLE_PLAIN, .every = 2},
        .out = out,
        .csv = "",
        .jsonl = "",
        .tensorboard_dir = "",
        .http_host = "127.0.0.1",
        .healthy_within_s = 3600,
        .wall_us = tick_us,
        .steady_us = tick_us,
    };
}

static struct telemetry *open_telemetry(const struct telemetry_setting *setting)
{
    struct telemetry *t = NULL;
    struct error err;
    assert_ok(telemetry_open(&t, setting, &err), &err);
    return t;
}

/* Steps first .. last, an evaluation and a save. */
static void run(struct telemetry *t, int64_t first, int64_t last)
{
    for (int64_t step = first; step <= last; step++) {
        const struct run_numbers numbers = run_fixture_numbers(step);
        telemetry_step(t, &numbers);
    }
    const struct run_eval eval = {.step = last, .loss = 2.25, .perplexity = 9.5, .seconds = 1};
    const struct run_save save = {.step = last, .path = "c/4", .seconds = 2};
    telemetry_eval(t, &eval);
    telemetry_checkpoint(t, &save);
}

static char *content(const char *path)
{
    char *text;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &text, &bytes, &err), &err);
    return text;
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void lines_are_printed_by_rank_0(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        struct telemetry_setting setting = setting_in(out);
        setting.facts.rank = setting.facts.local_rank = rank;
        struct telemetry *t = open_telemetry(&setting);
        run(t, 1, 4);
        telemetry_close(t);
        fclose(out);
        if (rank == 0) {
            assert_int_equal(count_lines(text), 5); /* steps 2 and 4, evaluation, save, end */
            assert_non_null(strstr(text, " | Step 4/100 | Loss: 2.5000 | "));
            assert_non_null(strstr(text, "Checkpoint saved: c/4\nTraining: 4 steps, "));
        } else {
            assert_string_equal(text, "");
        }
        free(text);
    }
}

static void files_go_on_after_a_restart(void **state)
{
    struct telemetry_setting setting = setting_in(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    auto_free char *jsonl = xasprintf("%s/logs/run.jsonl", (char *)*state);
    setting.csv = csv;
    setting.jsonl = jsonl;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    run(t, 1, 3);
    telemetry_close(t);
    t = open_telemetry(&setting);
    run(t, 4, 4);
    telemetry_close(t);
    auto_free char *rows = content(csv), *objects = content(jsonl);
    assert_int_equal(count_lines(rows), 1 + 5 + 3); /* one header */
    assert_int_equal(count_lines(objects), 5 + 3);
    static const int64_t steps[] = {1, 2, 3, 3, 3, 4, 4, 4};
    char *rest = objects;
    for (size_t i = 0; i < array_length(steps); i++) {
        struct json *object = json_parse_text(strsep(&rest, "\n"), JSON_STRICT, NULL);
        assert_int_equal(json_as_integer(json_get(object, "step")), steps[i]);
        json_free(object);
    }
}

static void other_ranks_write_no_files(void **state)
{
    struct telemetry_setting setting = setting_in(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    setting.csv = csv;
    setting.tensorboard_dir = *state;
    setting.facts.rank = setting.facts.local_rank = 1;
    struct telemetry *t = open_telemetry(&setting);
    run(t, 1, 2);
    telemetry_close(t);
    assert_int_equal(support_count_entries(*state), 0);
}

static void tensorboard_reads_what_was_written(void **state)
{
    struct telemetry_setting setting = setting_in(stdout);
    auto_free char *dir = xasprintf("%s/tensorboard_logs", (char *)*state);
    auto_free char *pattern = xasprintf("%s/events.out.tfevents.*", dir);
    setting.tensorboard_dir = dir;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    run(t, 1, 2);
    telemetry_close(t);
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    auto_free char *bytes = NULL;
    auto_free struct read_events *events = xmalloc(sizeof *events);
    size_t size;
    struct error err;
    assert_ok(file_read(found.gl_pathv[0], 1 << 20, &bytes, &size, &err), &err);
    globfree(&found);
    event_reader_read(bytes, size, events);
    assert_int_equal(events->count, 1 + 2 + 1 + 1);
    assert_string_equal(events->items[0].file_version, "brain.Event:2");
    assert_int_equal(events->items[2].step, 2);
    assert_true(event_reader_value(&events->items[2], "train/loss") == 2.5f);
    assert_true(event_reader_value(&events->items[3], "eval/loss") == 2.25f);
    assert_int_equal(events->items[4].step, 2);
}

static void a_full_disk_does_not_stop_the_run(void **state)
{
    struct telemetry_setting setting = setting_in(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    setting.csv = csv;
    setting.jsonl = "/dev/full";
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    run(t, 1, 3);
    telemetry_close(t);
    auto_free char *rows = content(csv);
    assert_int_equal(count_lines(rows), 1 + 5);
}

static void a_file_that_cannot_be_opened_is_an_error(void **state)
{
    struct telemetry_setting setting = setting_in(stdout);
    struct telemetry *t = NULL;
    struct error err;
    setting.csv = *state;
    assert_fails(telemetry_open(&t, &setting, &err), &err, ERR_EXISTS,
                 "is a directory: name a file");
    assert_null(t);
}

/* A preset's folder for logs, in a place where none can be made: only what somebody asked for ends
 * the run, the rest is told and left out. */
static void a_folder_that_cannot_be_made(void **state)
{
    (void)state;
    static const struct wandb_setting wandb = {.dir = "/proc/none", .run = {.id = ""}};
    const struct {
        bool needs_tensorboard, needs_wandb;
        const char *error; /* NULL: the run goes on */
    } rows[] = {
        {false, false, NULL},
        {true, false, "logging.tensorboard_dir: make directory /proc/none"},
        {false, true, "logging.wandb: make directory /proc/none"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct telemetry_setting setting = setting_in(stdout);
        struct telemetry *t = NULL;
        struct error err;
        setting.lines.style = STYLE_NONE;
        setting.tensorboard_dir = "/proc/none";
        setting.wandb = &wandb;
        setting.needs_tensorboard = rows[i].needs_tensorboard;
        setting.needs_wandb = rows[i].needs_wandb;
        if (rows[i].error) {
            assert_fails(telemetry_open(&t, &setting, &err), &err, ERR_NOT_FOUND, rows[i].error);
            assert_null(t);
            continue;
        }
        t = open_telemetry(&setting);
        run(t, 1, 2);
        telemetry_close(t);
    }
}

/* ---- HTTP ---- */

static void the_run_is_served(void **state)
{
    (void)state;
    struct telemetry_setting setting = setting_in(stdout);
    int port = setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    assert_int_equal(telemetry_port(t), port);
    auto_free char *early = served_get(port, "/metrics");
    exposition_check(early);
    run(t, 1, 3);
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

static void expect_termination_log(const char *path, const char *text)
{
    auto_free char *found = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &found, &bytes, &err), &err);
    assert_string_equal(found, text);
}

/* What the listener of the last numbers was told last, and how often. */
struct told {
    int count;
    char text[4096];
};

static void take_told(void *context, const char *numbers)
{
    struct told *told = context;
    told->count++;
    snprintf(told->text, sizeof told->text, "%s", numbers);
}

/* Whoever started the process is told the same, without a file. */
static void a_listener_is_told_the_last_numbers(void **state)
{
    (void)state;
    struct told told = {0};
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = 0;
    setting.lines.style = STYLE_NONE;
    setting.tell = take_told;
    setting.tell_context = &told;
    struct telemetry *t = open_telemetry(&setting);
    assert_int_equal(told.count, 1);
    run(t, 1, 8);
    int during = told.count;
    assert_true(during > 1); /* every few seconds, not each step */
    telemetry_close(t);
    assert_int_equal(told.count, during + 1);
    assert_non_null(strstr(told.text, "\"step\":8,"));

    setting.facts.rank = 1; /* knows only its own part */
    told.count = 0;
    t = open_telemetry(&setting);
    run(t, 1, 8);
    telemetry_close(t);
    assert_int_equal(told.count, 0);
}

/* The kubelet's file has the last numbers at each moment, and in the end why there are no more. */
static void the_last_numbers_outlive_the_process(void **state)
{
    (void)state;
    auto_free char *dir = support_temp_dir();
    auto_free char *path = xasprintf("%s/termination-log", dir);
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = 0;
    setting.lines.style = STYLE_NONE;
    setting.termination_log = path;
    struct telemetry *t = open_telemetry(&setting); /* no such file: nothing happens */
    run(t, 1, 8);
    telemetry_close(t);
    assert_int_equal(access(path, F_OK), -1);

    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 100; i++)
        fputs("something longer than what follows\n", file);
    fclose(file);
    clock_us = 0;
    t = open_telemetry(&setting);
    expect_termination_log(path, "{\"steps\":100,\"worldSize\":2,\"restarts\":0,"
                                 "\"lastProgressTime\":\"2025-06-17T16:24:53Z\"}\n");
    run(t, 1, 8);
    auto_free char *before = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &before, &bytes, &err), &err);
    assert_non_null(strstr(before, "\"step\":")); /* though nobody has ended it */
    telemetry_failed(t, 1, "rank 1: no\nspace left");
    telemetry_close(t);
    auto_free char *after = NULL;
    assert_ok(file_read(path, 1 << 20, &after, &bytes, &err), &err);
    assert_memory_equal(after, "rank 1: no space left\n{", 23);
    assert_non_null(strstr(after, "\"step\":8,"));

    t = open_telemetry(&setting);
    run(t, 1, 2);
    telemetry_close(t);
    auto_free char *done = NULL;
    assert_ok(file_read(path, 1 << 20, &done, &bytes, &err), &err);
    assert_int_equal(done[0], '{');
    assert_non_null(strstr(done, "\"lastCheckpointStep\":2,"));
    support_remove_tree(dir);
}

/* A name that its owner lets point to 127.0.0.1 makes a web page of this server's origin. */
static void a_page_of_another_name_cannot_read_the_run(void **state)
{
    (void)state;
    static const char *const paths[] = {"/metrics", "/status", "/healthz", "/steps"};
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
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

static void a_second_run_on_a_node_is_not_stopped(void **state)
{
    (void)state;
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    assert_int_equal(telemetry_port(t), setting.http_port);
    struct telemetry *other = open_telemetry(&setting);
    assert_int_equal(telemetry_port(other), 0);
    char url[TELEMETRY_URL_BYTES];
    telemetry_url(other, url);
    assert_string_equal(url, "");
    run(other, 1, 1);
    telemetry_close(other);
    setting.http_port_moves = true;
    other = open_telemetry(&setting);
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
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = free_port();
    setting.healthy_within_s = 0.001;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    bool is_late = false;
    while (!is_late) { /* after a millisecond */
        auto_str struct str all;
        served_exchange(setting.http_port, "/healthz", &all);
        is_late = !strncmp(str_text(&all), "HTTP/1.0 503 ", 13);
    }
    telemetry_close(t);
}

static void who_looks_hears_of_ranks_while_the_loop_stands_still(void **state)
{
    (void)state;
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    auto_close int fd = served_listen(setting.http_port, "/live");
    struct json *first = served_frame(fd);
    int64_t version = json_as_integer(json_get(first, "version"));
    json_free(first);
    clock_us += 1000000;
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

static void steps_are_streamed(void **state)
{
    (void)state;
    struct telemetry_setting setting = setting_in(stdout);
    setting.http_port = free_port();
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = open_telemetry(&setting);
    const struct run_numbers numbers = run_fixture_numbers(1);
    telemetry_step(t, &numbers); /* the last message waits for who comes */
    auto_close int fd = served_listen(setting.http_port, "/steps");
    struct json *object = served_frame(fd);
    assert_int_equal(json_as_integer(json_get(object, "step")), 1);
    json_free(object);
    run(t, 2, 3);
    for (int i = 2; i <= 5; i++) { /* steps 2 and 3, evaluation, save */
        object = served_frame(fd);
        assert_int_equal(json_as_integer(json_get(object, "step")), i < 3 ? i : 3);
        assert_int_equal(json_get(object, "loss") != NULL, i <= 3);
        assert_int_equal(json_get(object, "eval_loss") != NULL, i == 4);
        json_free(object);
    }
    telemetry_close(t);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_printed_by_rank_0),
        IN_DIR(files_go_on_after_a_restart),
        IN_DIR(other_ranks_write_no_files),
        IN_DIR(tensorboard_reads_what_was_written),
        IN_DIR(a_full_disk_does_not_stop_the_run),
        IN_DIR(a_file_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(the_run_is_served),
        cmocka_unit_test(the_last_numbers_outlive_the_process),
        cmocka_unit_test(a_listener_is_told_the_last_numbers),
        cmocka_unit_test(a_page_of_another_name_cannot_read_the_run),
        cmocka_unit_test(a_second_run_on_a_node_is_not_stopped),
        cmocka_unit_test(a_run_that_stands_still_is_not_healthy),
        cmocka_unit_test(steps_are_streamed),
        cmocka_unit_test(who_looks_hears_of_ranks_while_the_loop_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
