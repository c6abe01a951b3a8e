/* What a run tells how it goes: lines, files, and its last numbers. */
#include "tests/agent/event_reader.h"
#include "tests/agent/telemetry_fixture.h"
#include "tests/support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        struct telemetry_setting setting = telemetry_fixture_setting(out);
        setting.facts.rank = setting.facts.local_rank = rank;
        struct telemetry *t = telemetry_fixture_open(&setting);
        telemetry_fixture_run(t, 1, 4);
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
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    auto_free char *jsonl = xasprintf("%s/logs/run.jsonl", (char *)*state);
    setting.csv = csv;
    setting.jsonl = jsonl;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 3);
    telemetry_close(t);
    t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 4, 4);
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
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    setting.csv = csv;
    setting.tensorboard_dir = *state;
    setting.facts.rank = setting.facts.local_rank = 1;
    struct telemetry *t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 2);
    telemetry_close(t);
    assert_int_equal(support_count_entries(*state), 0);
}

static void tensorboard_reads_what_was_written(void **state)
{
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    auto_free char *dir = xasprintf("%s/tensorboard_logs", (char *)*state);
    auto_free char *pattern = xasprintf("%s/events.out.tfevents.*", dir);
    setting.tensorboard_dir = dir;
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 2);
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
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    auto_free char *csv = xasprintf("%s/run.csv", (char *)*state);
    setting.csv = csv;
    setting.jsonl = "/dev/full";
    setting.lines.style = STYLE_NONE;
    struct telemetry *t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 3);
    telemetry_close(t);
    auto_free char *rows = content(csv);
    assert_int_equal(count_lines(rows), 1 + 5);
}

static void a_file_that_cannot_be_opened_is_an_error(void **state)
{
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
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
        struct telemetry_setting setting = telemetry_fixture_setting(stdout);
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
        t = telemetry_fixture_open(&setting);
        telemetry_fixture_run(t, 1, 2);
        telemetry_close(t);
    }
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
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = 0;
    setting.lines.style = STYLE_NONE;
    setting.tell = take_told;
    setting.tell_context = &told;
    struct telemetry *t = telemetry_fixture_open(&setting);
    assert_int_equal(told.count, 1);
    telemetry_fixture_run(t, 1, 8);
    int during = told.count;
    assert_true(during > 1); /* every few seconds, not each step */
    telemetry_close(t);
    assert_int_equal(told.count, during + 1);
    assert_non_null(strstr(told.text, "\"step\":8,"));

    setting.facts.rank = 1; /* knows only its own part */
    told.count = 0;
    t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 8);
    telemetry_close(t);
    assert_int_equal(told.count, 0);
}

/* The kubelet's file has the last numbers at each moment, and in the end why there are no more. */
static void the_last_numbers_outlive_the_process(void **state)
{
    (void)state;
    auto_free char *dir = support_temp_dir();
    auto_free char *path = xasprintf("%s/termination-log", dir);
    struct telemetry_setting setting = telemetry_fixture_setting(stdout);
    setting.http_port = 0;
    setting.lines.style = STYLE_NONE;
    setting.termination_log = path;
    struct telemetry *t = telemetry_fixture_open(&setting); /* no such file: nothing happens */
    telemetry_fixture_run(t, 1, 8);
    telemetry_close(t);
    assert_int_equal(access(path, F_OK), -1);

    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 100; i++)
        fputs("something longer than what follows\n", file);
    fclose(file);
    telemetry_fixture_us = 0;
    t = telemetry_fixture_open(&setting);
    expect_termination_log(path, "{\"steps\":100,\"worldSize\":2,\"restarts\":0,"
                                 "\"lastProgressTime\":\"2025-06-17T16:24:53Z\"}\n");
    telemetry_fixture_run(t, 1, 8);
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

    t = telemetry_fixture_open(&setting);
    telemetry_fixture_run(t, 1, 2);
    telemetry_close(t);
    auto_free char *done = NULL;
    assert_ok(file_read(path, 1 << 20, &done, &bytes, &err), &err);
    assert_int_equal(done[0], '{');
    assert_non_null(strstr(done, "\"lastCheckpointStep\":2,"));
    support_remove_tree(dir);
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
        cmocka_unit_test(the_last_numbers_outlive_the_process),
        cmocka_unit_test(a_listener_is_told_the_last_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
