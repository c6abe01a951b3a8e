/* Traces: events lie in one array that is as long as it may get (pages nobody wrote to cost
 * nothing), so that a stream can write its times into it when it comes there. */
#include "base/clock.h"
#include "base/mem.h"
#include "kernels/trace_log.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct trace {
    struct trace_event *events;
    int64_t most;
    _Atomic int64_t taken;
    struct trace_clock clock; /* of stamps, unless the device has the host's */
    bool memory;
    int64_t traced_bytes[MEMORY_KINDS + 1]; /* the last is the total */
};

/* ---- events ---- */

struct trace_event *trace_add_event(struct trace *trace, enum trace_kind kind, const char *stream)
{
    /* Any thread may take one, without a lock; what is beyond the end is only counted. */
    int64_t i = atomic_fetch_add(&trace->taken, 1);
    if (i >= trace->most)
        return NULL;
    struct trace_event *event = &trace->events[i];
    event->kind = kind;
    snprintf(event->stream, sizeof event->stream, "%s", stream);
    return event;
}

void trace_range_begin(struct stream *s, enum trace_kind kind, const struct stream_range *range)
{
    int depth = s->open_ranges++;
    if (depth >= STREAM_MAX_RANGES)
        return;
    struct trace_event *event = s->ranges[depth] = trace_add_event(s->device->trace, kind, s->name);
    if (!event)
        return;
    event->range = *range;
    stream_timestamp(s, &event->begin_ns);
}

void trace_range_end(struct stream *s)
{
    if (s->open_ranges == 0) /* it began before the trace */
        return;
    int depth = --s->open_ranges;
    if (depth < STREAM_MAX_RANGES && s->ranges[depth])
        stream_timestamp(s, &s->ranges[depth]->end_ns);
}

static void trace_bytes(struct trace *trace, int which, const char *what, int64_t bytes)
{
    if (trace->traced_bytes[which] == bytes)
        return;
    trace->traced_bytes[which] = bytes;
    struct trace_event *event = trace_add_event(trace, TRACE_MEMORY, "");
    if (!event)
        return;
    event->begin_ns = event->end_ns = clock_monotonic_ns();
    event->range = (struct stream_range){.what = what, .bytes = bytes};
}

void trace_memory(struct device *device)
{
    const struct memory_use *use = memory_use(device->memory);
    if (!device->trace->memory)
        return;
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        trace_bytes(device->trace, kind, memory_kind_name((enum memory_kind)kind),
                    use->current_bytes[kind]);
    trace_bytes(device->trace, MEMORY_KINDS, "total", use->current_total_bytes);
}

/* ---- clocks ---- */

/* The stream is idle, so its stamp is taken while we look. */
static bool read_timestamp(void *stream, int64_t *ret_ns)
{
    struct error ignored; /* a failed stream has no times to map */
    stream_timestamp(stream, ret_ns);
    return stream_sync(stream, &ignored) == 0;
}

static void compare_clocks(const struct device *device, int which)
{
    trace_clock_compare(&device->trace->clock, which, read_timestamp, device->streams);
}

static bool has_other_clock(const struct device *device)
{
    return !device->backend->is_host && device->streams;
}

/* ---- beginning and ending ---- */

static void sync_streams(struct device *device)
{
    struct error ignored; /* whoever used the stream gets it */
    for (struct stream *s = device->streams; s; s = s->next)
        (void)stream_sync(s, &ignored);
}

bool device_trace_begin(struct device *device, int64_t most, bool memory, struct error *ret_why)
{
    assert(!device->trace && most >= 1);
    struct trace *trace = xcalloc(1, sizeof *trace);
    trace->events = xcalloc((size_t)most, sizeof *trace->events);
    trace->most = most;
    trace->memory = memory;
    memset(trace->traced_bytes, -1, sizeof trace->traced_bytes);
    sync_streams(device);
    for (struct stream *s = device->streams; s; s = s->next)
        s->open_ranges = 0;
    device->trace = trace;
    if (has_other_clock(device))
        compare_clocks(device, 0);
    trace_memory(device);
    return !device->backend->trace_begin || device->backend->trace_begin(device, ret_why) == 0;
}

static int compare(const void *left, const void *right)
{
    const struct trace_event *a = *(struct trace_event *const *)left,
                             *b = *(struct trace_event *const *)right;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return a < b ? -1 : a > b; /* what was queued first is outside */
}

static void emit_events(const struct trace *trace, int64_t count,
                        void (*each)(void *ctx, const struct trace_event *event), void *ctx)
{
    auto_free struct trace_event **order = xcalloc((size_t)count + 1, sizeof *order);
    int64_t whole = 0;
    for (int64_t i = 0; i < count; i++)
        if (trace->events[i].end_ns)
            order[whole++] = &trace->events[i];
    qsort(order, (size_t)whole, sizeof *order, compare);
    for (int64_t i = 0; i < whole; i++)
        each(ctx, order[i]);
}

static int64_t count_events(const struct trace *trace)
{
    int64_t taken = atomic_load(&trace->taken);
    return taken < trace->most ? taken : trace->most;
}

/* What the streams stamped, on our clock. */
static void map_timestamps(const struct device *device)
{
    struct trace *trace = device->trace;
    compare_clocks(device, 1);
    for (int64_t i = 0; i < count_events(trace); i++) {
        struct trace_event *event = &trace->events[i];
        if ((event->kind != TRACE_RANGE && event->kind != TRACE_COPY) || !event->end_ns)
            continue;
        event->begin_ns = trace_clock_map(&trace->clock, event->begin_ns);
        event->end_ns = trace_clock_map(&trace->clock, event->end_ns);
    }
}

static void add(void *ctx, const struct trace_event *event)
{
    struct trace_event *room = trace_add_event(ctx, event->kind, event->stream);
    if (room)
        *room = *event;
}

int64_t device_trace_end(struct device *device,
                         void (*each)(void *ctx, const struct trace_event *event), void *ctx)
{
    struct trace *trace = device->trace;
    sync_streams(device);
    if (has_other_clock(device))
        map_timestamps(device);
    if (device->backend->trace_end)
        device->backend->trace_end(device, add, trace);
    device->trace = NULL;
    if (each)
        emit_events(trace, count_events(trace), each, ctx);
    int64_t taken = atomic_load(&trace->taken), most = trace->most;
    free(trace->events);
    free(trace);
    return taken > most ? taken - most : 0;
}
