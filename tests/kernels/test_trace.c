/* Traces of a device: what was named and what ran, when, in which stream. */
#include "base/clock.h"
#include "base/mem.h"
#include "kernels/ops.h"
#include "kernels/trace_log.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, EVENTS = 256 };

struct world {
    struct device *device;
    struct stream *a, *b;
    float *memory;
};

static int setup(void **state)
{
    static struct world w;
    struct error err;
    void *memory;
    assert_ok(device_open(support_device(), 1, &w.device, &err), &err);
    assert_ok(stream_open(w.device, "a", &w.a, &err), &err);
    assert_ok(stream_open(w.device, "b", &w.b, &err), &err);
    assert_ok(device_alloc(w.device, MEMORY_UNIT, COUNT * sizeof(float), "test", &memory, &err),
              &err);
    w.memory = memory;
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    device_free(w->device, w->memory);
    stream_close(w->a);
    stream_close(w->b);
    device_close(w->device);
    return 0;
}

/* What a trace told. */
struct told {
    struct trace_event events[EVENTS];
    int count;
    int64_t lost;
};

static void keep(void *ctx, const struct trace_event *event)
{
    struct told *told = ctx;
    assert_true(told->count < EVENTS);
    told->events[told->count++] = *event;
}

static void begin(const struct world *w, int64_t most, bool memory)
{
    struct error why;
    if (!device_trace_begin(w->device, most, memory, &why))
        print_message("# %s\n", why.msg);
}

static struct told end(const struct world *w)
{
    struct told told = {.count = 0};
    told.lost = device_trace_end(w->device, keep, &told);
    return told;
}

static const struct trace_event *find(const struct told *told, const char *stream, const char *text)
{
    for (int i = 0; i < told->count; i++) {
        char has[64];
        stream_range_text(&told->events[i].range, has, sizeof has);
        if (strcmp(told->events[i].stream, stream) == 0 && strcmp(has, text) == 0)
            return &told->events[i];
    }
    return NULL;
}

static bool is_within(const struct trace_event *inner, const struct trace_event *outer)
{
    return inner->begin_ns >= outer->begin_ns && inner->end_ns <= outer->end_ns;
}

static const struct stream_range step = {.what = "step", .number = 7};
static const struct stream_range unit = {.what = "forward", .of = "layers.3", .bytes = 64};

/* Two ranges around an op and a copy on `a`; a lone range on `b`. */
static void do_work(const struct world *w)
{
    const struct ops *ops = device_ops(w->device);
    stream_range_begin(w->a, &step);
    stream_range_begin(w->a, &unit);
    ops->fill(w->a, w->memory, 1, COUNT);
    stream_copy(w->a, w->memory, w->memory + COUNT / 2, 100 * sizeof(float));
    stream_range_end(w->a);
    stream_range_begin(w->b, &unit);
    stream_range_end(w->b);
    stream_range_end(w->a);
}

static void test_what_was_named_is_told(void **state)
{
    const struct world *w = *state;
    int64_t before_ns = clock_monotonic_ns();
    begin(w, EVENTS, false);
    do_work(w);
    const struct told told = end(w);
    int64_t after_ns = clock_monotonic_ns();
    const struct trace_event *outer = find(&told, "a", "step#7");
    const struct trace_event *inner = find(&told, "a", "forward layers.3");
    const struct trace_event *copy = find(&told, "a", "copy");
    assert_true(outer && inner && copy && find(&told, "b", "forward layers.3"));
    assert_true(is_within(inner, outer) && is_within(copy, inner));
    assert_int_equal(inner->range.bytes, 64);
    assert_int_equal(copy->range.bytes, 400);
    assert_int_equal(copy->kind, TRACE_COPY);
    assert_int_equal(told.lost, 0);
    /* on the host's clock: that of a GPU may be so far off as two looks at both take */
    int64_t slack_ns = device_is_host(w->device) ? 0 : after_ns - before_ns;
    for (int i = 0; i < told.count; i++) {
        assert_true(told.events[i].begin_ns >= before_ns - slack_ns);
        assert_true(told.events[i].end_ns <= after_ns + slack_ns);
        assert_true(i == 0 || told.events[i].begin_ns >= told.events[i - 1].begin_ns);
    }
}

/* Every op of the CPU is an event, within the ranges around it. */
static void test_ops_of_the_cpu_are_told(void **state)
{
    const struct world *w = *state;
    begin(w, EVENTS, false);
    do_work(w);
    const struct told told = end(w);
    const struct trace_event *fill = find(&told, "a", "fill");
    assert_non_null(fill);
    assert_int_equal(fill->kind, TRACE_OP);
    assert_true(is_within(fill, find(&told, "a", "forward layers.3")));
    assert_null(find(&told, "a", "stream_copy")); /* the copy is told once */
    assert_null(find(&told, "a", "stream_timestamp"));
}

/* Kernels and copies of a GPU are told by CUPTI, in rows of their own but at the same times. */
static void test_kernels_are_told(void **state)
{
    const struct world *w = *state;
    const char *before = getenv("SHOAL_EMULATION");
    struct error why;
    for (int round = 0; round < 2; round++) {
        if (!device_trace_begin(w->device, EVENTS, false, &why)) {
            print_message("# %s\n", why.msg); /* a GPU whose driver lets only root look */
            device_trace_end(w->device, NULL, NULL);
            assert_null(before);
            return;
        }
        do_work(w);
        const struct told told = end(w);
        const struct trace_event *around = find(&told, "a", "forward layers.3");
        int kernels = 0, copies = 0;
        for (int i = 0; i < told.count; i++) {
            const struct trace_event *e = &told.events[i];
            if (e->kind != TRACE_OP && e->kind != TRACE_MOVE)
                continue;
            assert_string_equal(e->stream, "a");
            /* two clocks: as exact as looks at them are */
            assert_true(e->begin_ns >= around->begin_ns - 10000000);
            assert_true(e->end_ns <= around->end_ns + 10000000);
            kernels += e->kind == TRACE_OP;
            copies += e->kind == TRACE_MOVE && e->range.bytes == 400;
        }
        assert_int_equal(kernels, 1);
        assert_int_equal(copies, 1);
    }
}

/* One line says why there are no kernels; ranges are there all the same. */
static void test_without_cupti(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *setting, *why;
    } rows[] = {
        {"cupti=none", "libcupti.so.13 is not emulated"},
        {"cupti=old driver", "CUPTI_ERROR_NOT_INITIALIZED: the driver is too old for it"},
        {"cupti=denied", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: the driver lets only root do that"},
        {"", NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error why;
        setenv("SHOAL_EMULATION", rows[i].setting, 1);
        bool has_kernels = device_trace_begin(w->device, EVENTS, false, &why);
        assert_int_equal(has_kernels, rows[i].why == NULL);
        if (rows[i].why && !strstr(why.msg, rows[i].why))
            fail_msg("%s: %s", rows[i].setting, why.msg);
        do_work(w);
        const struct told told = end(w);
        assert_non_null(find(&told, "a", "forward layers.3"));
    }
    unsetenv("SHOAL_EMULATION");
}

/* CUPTI serves a process: the second device that asks has ranges only. */
static void test_two_devices(void **state)
{
    const struct world *w = *state;
    struct device *other;
    struct error err;
    assert_ok(device_open(support_device(), 1, &other, &err), &err);
    bool first = device_trace_begin(w->device, EVENTS, false, &err);
    bool second = device_trace_begin(other, EVENTS, false, &err);
    assert_false(second);
    if (first)
        assert_non_null(strstr(err.msg, "CUPTI serves one device of a process"));
    device_trace_end(other, NULL, NULL);
    end(w);
    device_close(other);
}

/* What began before a trace or ends after it is not in it, and does not harm it. */
static void test_a_trace_has_whole_ranges_only(void **state)
{
    const struct world *w = *state;
    stream_range_begin(w->a, &step);
    begin(w, EVENTS, false);
    do_work(w);
    stream_range_end(w->a);
    stream_range_begin(w->a, &(struct stream_range){.what = "open"});
    const struct told told = end(w);
    stream_range_end(w->a);
    assert_null(find(&told, "a", "open"));
    assert_non_null(find(&told, "a", "step#7"));
    begin(w, EVENTS, false);
    const struct told empty = end(w);
    assert_int_equal(empty.count, 0);
}

static void test_there_is_a_most(void **state)
{
    const struct world *w = *state;
    begin(w, 3, false);
    do_work(w);
    const struct told told = end(w);
    assert_true(told.count <= 3 && told.count >= 1);
    assert_true(told.lost >= 1);
}

/* Ranges deeper than a stream keeps are left out; those around them are whole. */
static void test_depth(void **state)
{
    const struct world *w = *state;
    enum { DEEP = STREAM_MAX_RANGES + 4 };
    begin(w, EVENTS, false);
    for (int i = 1; i <= DEEP; i++)
        stream_range_begin(w->a, &(struct stream_range){.what = "deep", .number = i});
    for (int i = 1; i <= DEEP; i++)
        stream_range_end(w->a);
    const struct told told = end(w);
    assert_int_equal(told.count, STREAM_MAX_RANGES);
    assert_non_null(find(&told, "a", "deep#16"));
    assert_null(find(&told, "a", "deep#17"));
}

static void test_memory_is_told_as_it_changes(void **state)
{
    const struct world *w = *state;
    struct error err;
    void *more;
    begin(w, EVENTS, true);
    assert_ok(device_alloc(w->device, MEMORY_GRADIENT, 4096, "more", &more, &err), &err);
    device_free(w->device, more);
    const struct told told = end(w);
    int64_t total[3], gradients[3];
    int totals = 0, changes = 0;
    for (int i = 0; i < told.count; i++) {
        assert_int_equal(told.events[i].kind, TRACE_MEMORY);
        if (strcmp(told.events[i].range.what, "total") == 0)
            total[totals++] = told.events[i].range.bytes;
        if (strcmp(told.events[i].range.what, "gradient") == 0)
            gradients[changes++] = told.events[i].range.bytes;
    }
    assert_int_equal(totals, 3); /* before, with, and without it */
    assert_int_equal(total[1], total[0] + 4096);
    assert_int_equal(total[2], total[0]);
    assert_int_equal(changes, 3);
    assert_true(gradients[0] == 0 && gradients[1] == 4096 && gradients[2] == 0);
}

/* NVIDIA's tools see the names on the thread that queues, traced or not. */
static void test_nvtx(void **state)
{
    const struct world *w = *state;
    void *emulation = dlopen(getenv("SHOAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(emulation);
    const char *(*ranges)(void) = NULL;
    *(void **)&ranges = dlsym(emulation, "emulation_ranges");
    assert_non_null(ranges);
    ranges();
    do_work(w);
    assert_string_equal(ranges(), "shoal: step#7 {shoal: forward layers.3 {} "
                                  "shoal: forward layers.3 {} } ");
    dlclose(emulation);
}

/* Times of another clock: it is 1000 ns behind, and, over long times, too slow by a half. */
static void test_clocks(void **state)
{
    (void)state;
    const struct {
        struct trace_clock clock;
        int64_t theirs, ours;
    } rows[] = {
        {{{5000, 5000}, {6000, 6000}}, 5100, 6100},
        {{{5000, 15000}, {6000, 16000}}, 4000, 5000},
        {{{5000, 15000}, {6000, 16200}}, 5000, 6100}, /* the looks differ: between both */
        {{{0, 2000000000}, {1000, 3000001000}}, 1000000000, 1500001000},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(trace_clock_map(&rows[i].clock, rows[i].theirs), rows[i].ours);
}

int main(void)
{
    const struct CMUnitTest on_emulation[] = {
        cmocka_unit_test(test_without_cupti), /* before others have found it */
        cmocka_unit_test(test_nvtx),
    };
    const struct CMUnitTest on_gpu[] = {
        cmocka_unit_test(test_kernels_are_told),
        cmocka_unit_test(test_two_devices),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test(test_ops_of_the_cpu_are_told),
    };
    const struct CMUnitTest on_any[] = {
        cmocka_unit_test(test_what_was_named_is_told),
        cmocka_unit_test(test_a_trace_has_whole_ranges_only),
        cmocka_unit_test(test_there_is_a_most),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_memory_is_told_as_it_changes),
        cmocka_unit_test(test_clocks),
    };
    const char *library = getenv("SHOAL_CUDA_LIBRARY");
    bool is_gpu = strcmp(support_device(), "cpu") != 0;
    int failed = 0;
    if (is_gpu && library && strstr(library, "emulation"))
        failed += cmocka_run_group_tests(on_emulation, setup, teardown);
    if (is_gpu)
        failed += cmocka_run_group_tests(on_gpu, setup, teardown);
    else
        failed += cmocka_run_group_tests(on_cpu, setup, teardown);
    return failed + cmocka_run_group_tests(on_any, setup, teardown);
}
