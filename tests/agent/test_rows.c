#include "tests/agent/event_reader.h"
#include "tests/agent/run_fixture.h"
#include "tests/support.h"

#include "agent/telemetry/csv.h"
#include "agent/telemetry/json_row.h"
#include "agent/telemetry/tensorboard.h"
#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 64 * 1024, COLUMNS_MAX = 128 };

/* Cuts a line into its columns. The line is changed. */
static int split(char *line, char *columns[COLUMNS_MAX])
{
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at; count++) {
        assert_true(count < COLUMNS_MAX);
        columns[count] = strsep(&at, ",");
    }
    return count;
}

static const char *column(char *const names[], char *const values[], int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return values[i];
    fail_msg("no column %s", name);
    return NULL;
}

static void csv_rows_fit_their_header(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    char *names[COLUMNS_MAX], *step[COLUMNS_MAX], *eval[COLUMNS_MAX];
    auto_str struct str header, step_row, eval_row;
    str_init(&header, TEXT_BYTES);
    str_init(&step_row, TEXT_BYTES);
    str_init(&eval_row, TEXT_BYTES);
    csv_header(WORDS_HF, &header);
    csv_row(FIELD_STEP, WORDS_HF, &s, &step_row);
    csv_row(FIELD_EVAL, WORDS_HF, &s, &eval_row);
    int count = split(header.text, names);
    assert_int_equal(split(step_row.text, step), count);
    assert_int_equal(split(eval_row.text, eval), count);
    assert_string_equal(column(names, step, count, "step"), "3");
    assert_string_equal(column(names, step, count, "loss"), "2.5");
    assert_string_equal(column(names, step, count, "learning_rate"), "0.0001");
    assert_string_equal(column(names, step, count, "mfu"), "0.6");
    assert_string_equal(column(names, step, count, "memory_peak_bytes"), "5368709120");
    assert_string_equal(column(names, step, count, "memory_unit_peak_bytes"), "1048576");
    assert_string_equal(column(names, step, count, "eval_loss"), "");
    assert_string_equal(column(names, eval, count, "step"), "3");
    assert_string_equal(column(names, eval, count, "eval_loss"), "2.25");
    assert_string_equal(column(names, eval, count, "loss"), "");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
}

static void the_fabric_scripts_have_their_names(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "throughput/batches_per_sec",
        "throughput/samples_per_sec",
        "throughput/tokens_per_sec",
        "throughput/flops_per_sec",
        "throughput/device/batches_per_sec",
        "throughput/device/samples_per_sec",
        "throughput/device/tokens_per_sec",
        "throughput/device/flops_per_sec",
        "throughput/device/mfu",
        "time/train",
        "time/val",
        "time/total",
        "samples",
        "total_tokens",
        "metric/train_loss",
        "metric/train_ppl",
        "metric/val_loss",
        "metric/val_ppl",
    };
    char *names[COLUMNS_MAX];
    auto_str struct str header;
    str_init(&header, TEXT_BYTES);
    csv_header(WORDS_FABRIC, &header);
    int count = split(header.text, names);
    for (size_t i = 0; i < array_length(expected); i++)
        column(names, names, count, expected[i]);
}

/* Read back by base/json.h, which wrote none of it. */
static void json_rows_are_json(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    s.last.grad_norm = (double)NAN;
    s.last.loss = (double)INFINITY;
    auto_str struct str text;
    str_init(&text, TEXT_BYTES);
    json_row(FIELD_STEP, WORDS_HF, &s, &text);
    struct json *row = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_non_null(row);
    assert_int_equal(json_as_integer(json_get(row, "step")), 3);
    assert_true(json_as_number(json_get(row, "learning_rate")) == 1e-4);
    assert_true(json_is_null(json_get(row, "grad_norm")));
    assert_true(json_is_null(json_get(row, "loss")));
    assert_int_equal(json_as_integer(json_get(row, "num_input_tokens_seen")), 3 * 4096);
    assert_null(json_get(row, "eval_loss"));
    json_free(row);

    str_clear(&text);
    json_row(FIELD_EVAL, WORDS_FABRIC, &s, &text);
    row = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_true(json_as_number(json_get(row, "metric/val_loss")) == 2.25);
    assert_int_equal(json_as_integer(json_get(row, "step")), 3);
    json_free(row);
}

static void tensorboard_gets_what_is_known(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    s.last.grad_norm = (double)NAN;
    auto_str struct str file;
    str_init(&file, TEXT_BYTES);
    tensorboard_head(s.start_wall_us, &file);
    tensorboard_row(FIELD_STEP, WORDS_TAGS, &s, &file);
    tensorboard_row(FIELD_EVAL, WORDS_TAGS, &s, &file);
    tensorboard_row(FIELD_STEP, WORDS_FABRIC, &s, &file);
    auto_free struct read_events *events = xmalloc(sizeof *events);
    event_reader_read(file.text, file.length, events);
    assert_int_equal(events->count, 4);
    const struct read_event *step = &events->items[1], *eval = &events->items[2];
    assert_int_equal(step->step, 3);
    assert_true(step->wall_s == (double)s.progress_wall_us / 1e6);
    assert_true(event_reader_value(step, "train/loss") == 2.5f);
    assert_true(event_reader_value(step, "train/learning_rate") == 1e-4f);
    assert_true(event_reader_value(step, "train/epoch") == 0.03f);
    assert_true(event_reader_value(step, "time/total") == 5);
    assert_false(event_reader_has(step, "train/grad_norm"));
    assert_false(event_reader_has(step, "eval/loss"));
    assert_true(event_reader_value(eval, "eval/loss") == 2.25f);
    assert_true(event_reader_value(&events->items[3], "metric/train_loss") == 2.5f);
    assert_false(event_reader_has(&events->items[3], "step"));
}

static void tensorboard_finds_its_file(void **state)
{
    (void)state;
    auto_str struct str path;
    str_init(&path, 4096);
    tensorboard_path("logs", RUN_FIXTURE_WALL_US, "pod-0", 7, &path);
    assert_string_equal(str_text(&path), "logs/events.out.tfevents.1750177492.pod-0.7.123000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_rows_fit_their_header),
        cmocka_unit_test(the_fabric_scripts_have_their_names),
        cmocka_unit_test(json_rows_are_json),
        cmocka_unit_test(tensorboard_gets_what_is_known),
        cmocka_unit_test(tensorboard_finds_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
