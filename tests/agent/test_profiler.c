/* Traces of whole runs, with ranks as threads, opened as a viewer would: every row nests, every
 * unit and collective of the steps that were asked for is there, and nothing else changes. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include "agent/telemetry/profiler.h"
#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LAYERS = 3,
    /* of runs_configure_language's model, 4 bytes each: attention, MLP and two norms; embeddings
     * and the last norm */
    LAYER_BYTES = 4 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 48 + 2 * 32),
    ROOT_BYTES = 4 * (2 * 64 * 32 + 32),
    TEXT_BYTES = 8 << 20,
    MAX_DEPTH = 16,
};

/* A file of the test's folder; gzip or not. */
static struct json *read_trace(const char *dir, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_free char *text = xmalloc(TEXT_BYTES);
    gzFile file = gzopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    int bytes = gzread(file, text, TEXT_BYTES - 1);
    assert_true(bytes > 0);
    text[bytes] = '\0';
    gzclose(file);
    struct error err;
    struct json *trace = json_parse_text(text, JSON_STRICT, &err);
    if (!trace)
        fail_msg("%s: %s", path, err.msg);
    return trace;
}

static const char *text_of(const struct json *event, const char *name)
{
    const char *text = json_as_text(json_get(event, name));
    return text ? text : "";
}

static double number_of(const struct json *event, const char *name)
{
    return json_as_number(json_get(event, name));
}

static int64_t arg_of(const struct json *event, const char *name)
{
    return json_as_integer(json_get(json_get(event, "args"), name));
}

static bool same_row(const struct json *a, const struct json *b)
{
    return number_of(a, "pid") == number_of(b, "pid") && number_of(a, "tid") == number_of(b, "tid");
}

static double end_of(const struct json *event)
{
    return number_of(event, "ts") + number_of(event, "dur");
}

static bool is_span(const struct json *event)
{
    return strcmp(text_of(event, "ph"), "X") == 0;
}

/* Two events of a row are apart or one is within the other. The file has each row's in the order of
 * their begins, the outer first. The allowance is for what doubles cannot say. */
static void assert_nests(struct json *trace)
{
    struct json *events = json_get(trace, "traceEvents"), *each, *other;
    const double allowed_us = 1e-4;
    for (size_t i = 0; i < json_array_count(events); i++) {
        each = json_at(events, i);
        if (!is_span(each))
            continue;
        assert_true(number_of(each, "dur") >= 0);
        for (size_t j = i + 1; j < json_array_count(events) && j < i + 200; j++) {
            other = json_at(events, j);
            if (!is_span(other) || !same_row(each, other))
                continue;
            assert_true(number_of(other, "ts") >= number_of(each, "ts"));
            if (number_of(other, "ts") < end_of(each) - allowed_us &&
                end_of(other) > end_of(each) + allowed_us)
                fail_msg("%s and %s overlap", text_of(each, "name"), text_of(other, "name"));
        }
    }
}

/* How many events there are of that name and category ("": any). */
static int count(const struct json *trace, const char *category, const char *name)
{
    const struct json *event;
    int found = 0;
    json_each_item(event, json_get(trace, "traceEvents")) {
        found += strcmp(text_of(event, "name"), name) == 0 &&
                 (!category[0] || strcmp(text_of(event, "cat"), category) == 0);
    }
    return found;
}

/* Steps `first` to `last`, once in the row of the trainer and once in that of the device. */
static void assert_steps(const struct json *trace, int first, int last)
{
    for (int step = 1; step <= RUNS_MAX_STEPS; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        assert_int_equal(count(trace, "", name), step >= first && step <= last ? 2 : 0);
    }
}

static void assert_units(const struct json *trace, int steps, bool recomputes)
{
    for (int unit = 0; unit <= LAYERS; unit++) {
        char of[64], name[96];
        bool is_root = unit == LAYERS;
        snprintf(of, sizeof of, "model.layers.%d", unit);
        const struct {
            const char *what;
            int times;
        } rows[] = {{"forward", steps},
                    {"backward", steps},
                    {"recompute", recomputes && !is_root ? steps : 0},
                    {"all_gather", is_root ? steps : 2 * steps},
                    {"reduce_scatter", steps}};
        for (size_t i = 0; i < array_length(rows); i++) {
            snprintf(name, sizeof name, "%s %s", rows[i].what, is_root ? "LlamaForCausalLM" : of);
            if (count(trace, "user_annotation", name) != rows[i].times)
                fail_msg("%s is there %d times, not %d", name,
                         count(trace, "user_annotation", name), rows[i].times);
        }
    }
}

/* Every collective with its bytes, its ranks, and a number above that of the one before. */
static void assert_collectives(const struct json *trace, int steps)
{
    const struct json *event;
    int layers = 0, roots = 0, scatters = 0;
    int64_t last = 0;
    json_each_item(event, json_get(trace, "traceEvents")) {
        if (strcmp(text_of(event, "cat"), "collective") != 0)
            continue;
        assert_int_equal(arg_of(event, "ranks"), 2);
        const char *name = text_of(event, "name");
        int64_t bytes = arg_of(event, "bytes");
        layers += strcmp(name, "all_gather") == 0 && bytes == LAYER_BYTES;
        roots += strcmp(name, "all_gather") == 0 && bytes == ROOT_BYTES;
        scatters +=
            strcmp(name, "reduce_scatter") == 0 && (bytes == LAYER_BYTES || bytes == ROOT_BYTES);
        if (strcmp(name, "all_gather") == 0) { /* all in one row */
            assert_true(arg_of(event, "number") > last);
            last = arg_of(event, "number");
        }
    }
    assert_int_equal(layers, 2 * LAYERS * steps);
    assert_int_equal(roots, steps);
    assert_int_equal(scatters, (LAYERS + 1) * steps);
    assert_int_equal(count(trace, "collective", "all_gather"), layers + roots);
    assert_int_equal(count(trace, "collective", "reduce_scatter"), scatters);
}

#define PROFILE "--profiler.enable --profiler.dir %s/%s "

static void run_language(struct run *run, struct arena *arena, const char *data, const char *dir,
                         const char *flags)
{
    const char *all = arena_printf(arena, PROFILE "%s", data, dir, flags);
    runs_do_language(run, arena, data, 2, all);
}

static void a_run_is_traced_as_asked(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *dir = arena_printf(arena, "%s/traces", data);
    struct run plain = {0}, run = {0};
    const char *also = "--activation_checkpointing full ";
    runs_do_language(&plain, arena, data, 2, also);
    run_language(&run, arena, data, "traces",
                 arena_printf(arena,
                              "%s--profiler.start_step 1 --profiler.warmup_steps 1 "
                              "--profiler.active_steps 2 --profiler.repeat_every 4 "
                              "--profiler.ranks 0,1 --profiler.file t{rank}-{step}.json",
                              also));
    assert_memory_equal(run.seen[0].loss, plain.seen[0].loss, sizeof run.seen[0].loss);
    assert_int_equal(support_count_entries(dir), 4);
    for (int rank = 0; rank < 2; rank++)
        for (int last = 4; last <= 8; last += 4) {
            struct json *trace = read_trace(dir, arena_printf(arena, "t%d-%d.json", rank, last));
            struct json *where = json_get(trace, "distributedInfo");
            assert_int_equal(json_as_integer(json_get(where, "rank")), rank);
            assert_nests(trace);
            assert_steps(trace, last - 1, last);
            assert_units(trace, 2, true);
            assert_collectives(trace, 2);
            assert_int_equal(count(trace, "user_annotation", "optimizer"), 4);
            assert_int_equal(count(trace, "user_annotation", "data"), 1); /* ends an epoch */
            assert_true(count(trace, "cpu_op", "attention_forward") == 4 * LAYERS);
            assert_true(count(trace, "copy", "copy") > 0);
            assert_true(count(trace, "", "memory: activation") > 2);
            json_free(trace);
        }
}

static void one_rank_can_be_traced_and_compressed(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *dir = arena_printf(arena, "%s/one/r1", data);
    struct run run = {0};
    run_language(&run, arena, data, "one/r{rank}",
                 "--profiler.warmup_steps 0 --profiler.ranks 1 --profiler.gzip "
                 "--profiler.memory=off");
    assert_int_equal(support_count_entries(dir), 1);
    struct json *trace = read_trace(dir, "trace.json.gz");
    assert_steps(trace, 1, 1);
    assert_units(trace, 1, false);
    assert_int_equal(count(trace, "", "memory: total"), 0);
    json_free(trace);
    auto_free char *other = xasprintf("%s/one", data);
    assert_int_equal(support_count_entries(other), 1);
}

/* A run that ends within a window leaves the steps that it did. */
static void a_run_that_stops_leaves_what_it_has(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *dir = arena_printf(arena, "%s/short", data);
    struct run run = {0};
    run_language(&run, arena, data, "short", "--profiler.active_steps 100 --max_steps 5");
    struct json *trace = read_trace(dir, "trace.json");
    assert_nests(trace);
    assert_steps(trace, 4, 5);
    json_free(trace);
    assert_true(run.seen[0].phases & 1u << RANK_TRACE);
}

static void what_cannot_be_is_told_at_the_start(void **state)
{
    static const struct {
        const char *dir, *flags, *message;
        enum error_code code;
    } rows[] = {
        {"traces", "--profiler.ranks 5 --profiler.file t{rank}",
         "profiler.ranks: there is no rank 5 among 2", ERR_CONFIG},
        {"train.bin/{rank}", "", "profiler.dir: ", ERR_EXISTS},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct config *config = arena_new(arena, struct config);
        struct run run = {.config = &config->value, .size = 2};
        runs_configure_language(
            config, arena, *state, 2,
            arena_printf(arena, PROFILE "%s", (char *)*state, rows[i].dir, rows[i].flags));
        runs_start(&run);
        for (int rank = 0; rank < 2; rank++) {
            assert_fails(run.result[rank], &run.err[rank], rows[i].code, rows[i].message);
            assert_int_equal(run.seen[rank].steps, 0);
        }
    }
}

/* A run that is over before its window begins says so, and leaves no file. */
static void a_window_that_is_not_reached_is_told(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    struct run run = {0};
    run_language(&run, arena, data, "never", "--max_steps 3");
    assert_non_null(strstr(run.seen[0].notice, "step 4 would be the first to be traced"));
    assert_non_null(strstr(run.seen[0].notice, "and the run ends with step 3"));
    assert_false(run.seen[0].phases & 1u << RANK_TRACE);
    assert_int_equal(support_count_entries(arena_printf(arena, "%s/never", data)), 0);
}

/* More than there is room for: the file is whole, and has what came first. */
static void a_trace_has_a_most(void **state)
{
    struct device *device;
    struct stream *stream;
    struct error err;
    auto_free char *path = xasprintf("%s/most.json", (char *)*state);
    const struct profiler_setting setting = {.world_size = 1, .max_events = 10};
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "compute", &stream, &err), &err);
    struct profiler *p = profiler_open(&setting);
    profiler_add_device(p, device, "cpu");
    profiler_begin(p);
    for (int step = 1; step <= 40; step++) {
        profiler_begin_step(p, step);
        stream_range_begin(stream, &(struct stream_range){.what = "work", .number = step});
        stream_range_end(stream);
        profiler_end_step(p, true);
    }
    assert_ok(profiler_write(p, path, false, &err), &err);
    struct json *trace = read_trace(*state, "most.json");
    assert_int_equal(count(trace, "", "work#10"), 1);
    assert_int_equal(count(trace, "", "work#11"), 0);
    assert_int_equal(count(trace, "", "ProfilerStep#11"), 0);
    json_free(trace);
    profiler_begin(p);
    assert_fails(profiler_write(p, "/proc/no/trace", false, &err), &err, ERR_NOT_FOUND, "/proc/no");
    assert_false(profiler_is_recording(p));
    profiler_close(p);
    stream_close(stream);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_traced_as_asked),
        cmocka_unit_test(one_rank_can_be_traced_and_compressed),
        cmocka_unit_test(a_run_that_stops_leaves_what_it_has),
        cmocka_unit_test(a_window_that_is_not_reached_is_told),
        cmocka_unit_test(what_cannot_be_is_told_at_the_start),
        cmocka_unit_test(a_trace_has_a_most),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
