/* Traces as text, read back, and the files they go to. */
#include "agent/telemetry/trace_file.h"
#include "agent/telemetry/trace_json.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TEXT_BYTES = 64 * 1024 };

#define BASE INT64_C(1795305600000000000)

static struct json *event_at(struct json *trace, size_t i)
{
    struct json *event = json_at(json_get(trace, "traceEvents"), i);
    assert_non_null(event);
    return event;
}

static void assert_text(const struct json *event, const char *name, const char *text)
{
    assert_string_equal(json_as_text(json_get(event, name)), text);
}

/* Microseconds with three decimals, as nanoseconds. */
static int64_t ns_of(const struct json *event, const char *name)
{
    return (int64_t)(json_as_number(json_get(event, name)) * 1000 + 0.5);
}

static void a_trace_is_what_was_told(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, TEXT_BYTES);
    const struct trace_json t = {&text, BASE};
    const struct trace_span span = {.row = {9, 2},
                                    .category = "collective",
                                    .name = "a \"quoted\"\n\x01name",
                                    .begin_ns = BASE + 86399123456789,
                                    .end_ns = BASE + 86399123456789 + 1234567,
                                    .bytes = INT64_C(5000000000),
                                    .number = 3,
                                    .ranks = 2};
    trace_json_begin(&t, 1, 4, "a \"GPU\"", 85899345920, 9);
    trace_json_thread(&t, (struct trace_row){9, 2}, "transfer");
    trace_json_span(&t, &span);
    trace_json_span(&t, &(struct trace_span){.row = {9, 2},
                                             .category = "kernel",
                                             .name = "_Z3addIfEvPT_S1_i",
                                             .begin_ns = BASE + 7,
                                             .end_ns = BASE + 7});
    trace_json_bytes(&t, 9, "memory: unit", BASE + 1500, 4096);
    trace_json_process(&t, 10, "rank 1: cuda");
    /* the day begins within it */
    trace_json_span(&t, &(struct trace_span){.row = {9, 2},
                                             .category = "kernel",
                                             .name = "before",
                                             .begin_ns = BASE - 1001,
                                             .end_ns = BASE + 7});
    trace_json_end(&t);
    assert_false(text.truncated);
    assert_non_null(strstr(str_text(&text), "\"ts\":-1.001,"));
    struct error err;
    struct json *trace = json_parse_text(str_text(&text), JSON_STRICT, &err);
    if (!trace)
        fail_msg("%s: %s", err.msg, str_text(&text));
    struct json *ranks = json_get(trace, "distributedInfo");
    assert_int_equal(json_as_integer(json_get(ranks, "rank")), 1);
    assert_text(json_at(json_get(trace, "deviceProperties"), 0), "name", "a \"GPU\"");
    assert_int_equal(json_as_integer(json_get(ranks, "world_size")), 4);
    assert_int_equal(json_as_integer(json_get(trace, "baseTimeNanoseconds")), BASE);

    assert_text(event_at(trace, 0), "name", "process_name");
    assert_text(json_get(event_at(trace, 0), "args"), "name", "rank 1: host");
    assert_text(event_at(trace, 2), "name", "thread_name");
    struct json *event = event_at(trace, 4), *args = json_get(event, "args");
    assert_text(event, "ph", "X");
    assert_text(event, "cat", "collective");
    assert_text(event, "name", "a \"quoted\"\n\x01name");
    assert_int_equal(ns_of(event, "ts"), INT64_C(86399123456789));
    assert_int_equal(ns_of(event, "dur"), 1234567);
    assert_int_equal(json_as_integer(json_get(event, "tid")), 2);
    assert_int_equal(json_as_integer(json_get(args, "bytes")), INT64_C(5000000000));
    assert_int_equal(json_as_integer(json_get(args, "number")), 3);
    assert_int_equal(json_as_integer(json_get(args, "ranks")), 2);
    event = event_at(trace, 5);
    assert_text(event, "name", "void add<float>(float*, float*, int)");
    assert_int_equal(ns_of(event, "ts"), 7);
    assert_int_equal(json_object_count(json_get(event, "args")), 0);
    event = event_at(trace, 6);
    assert_text(event, "ph", "C");
    assert_int_equal(ns_of(event, "ts"), 1500);
    assert_int_equal(json_as_integer(json_get(json_get(event, "args"), "bytes")), 4096);
    json_free(trace);
}

/* ---- files ---- */

enum { LINES = 30000 };

/* Writes more than any buffer on the way holds. */
static void write_lines(const char *path, bool gzip)
{
    struct trace_file *file;
    struct error err;
    assert_ok(trace_file_create(path, gzip, &file, &err), &err);
    for (int i = 0; i < LINES; i++) {
        char line[32];
        int length = snprintf(line, sizeof line, "line %d\n", i * 7919);
        assert_ok(trace_file_write(file, line, (size_t)length, &err), &err);
    }
    assert_ok(trace_file_finish(file, &err), &err);
}

static void files_are_there_whole(void **state)
{
    const char *dir = *state;
    for (int gzip = 0; gzip < 2; gzip++) {
        auto_free char *path = xasprintf("%s/deep/er/trace.%d", dir, gzip);
        write_lines(path, gzip);
        write_lines(path, gzip);          /* in place of the first */
        gzFile file = gzopen(path, "rb"); /* reads both */
        assert_non_null(file);
        assert_int_equal(gzdirect(file), !gzip);
        for (int i = 0; i < LINES; i++) {
            char line[32], wanted[32];
            snprintf(wanted, sizeof wanted, "line %d\n", i * 7919);
            assert_non_null(gzgets(file, line, sizeof line));
            assert_string_equal(line, wanted);
        }
        assert_int_equal(gzgetc(file), -1);
        gzclose(file);
    }
    auto_free char *folder = xasprintf("%s/deep/er", dir);
    assert_int_equal(support_count_entries(folder), 2);
}

static void an_abandoned_file_leaves_nothing(void **state)
{
    const char *dir = *state;
    auto_free char *folder = xasprintf("%s/left", dir);
    auto_free char *path = xasprintf("%s/trace", folder);
    struct trace_file *file;
    struct error err;
    assert_ok(trace_file_create(path, true, &file, &err), &err);
    assert_ok(trace_file_write(file, "x", 1, &err), &err);
    trace_file_abandon(file);
    trace_file_abandon(NULL);
    assert_int_equal(support_count_entries(folder), 0);
    auto_free char *below = xasprintf("%s/deep/er/trace.0/x", dir);
    assert_fails(trace_file_create(below, false, &file, &err), &err, ERR_EXISTS, "trace.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_what_was_told),
        cmocka_unit_test(files_are_there_whole),
        cmocka_unit_test(an_abandoned_file_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, support_enter_dir, support_leave_dir);
}
