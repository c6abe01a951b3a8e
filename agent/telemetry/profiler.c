#include "agent/telemetry/profiler.h"

#include "agent/telemetry/trace_file.h"
#include "agent/telemetry/trace_json.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRAINER_TID = 1,         /* the trainer's thread among the host's rows */
    MAX_ROWS = 64,           /* of a device */
    PIDS = 8,                /* of a rank: its host, its devices */
    PIECE_BYTES = 64 * 1024, /* written at once */
    EVENT_MAX_BYTES = 64 * 1024,
    DAY_S = 24 * 60 * 60,
};

/* Something the trainer's thread was about. */
struct host_span {
    const char *name;
    int64_t number; /* a step's; 0: a phase */
    int64_t begin_ns, end_ns;
};

struct traced {
    struct device *device;
    const char *what;
    bool warned; /* what it cannot record */
};

struct profiler {
    struct profiler_setting setting;
    struct traced devices[PROFILER_MAX_DEVICES];
    int device_count;
    bool has_begun;
    struct host_span *spans;
    int64_t span_count, span_capacity, lost_spans;
    int64_t step, phase; /* the open ones among the spans, from 1; 0: none */
};

/* A trace on its way into its file. */
struct writing {
    struct profiler *profiler;
    struct trace_json json;
    struct str text;
    int64_t wall_ns; /* what the wall's clock is ahead of the monotonic one */
    struct trace_file *file;
    int result;
    struct error *err;
    int pid; /* of the device that is recorded, and its rows so far */
    bool is_host;
    char rows[MAX_ROWS][32];
    int row_count;
};

struct profiler *profiler_open(const struct profiler_setting *setting)
{
    struct profiler *p = xcalloc(1, sizeof *p);
    p->setting = *setting;
    return p;
}

void profiler_close(struct profiler *p)
{
    if (!p)
        return;
    if (p->has_begun)
        profiler_discard(p);
    free(p->spans);
    free(p);
}

void profiler_add_device(struct profiler *p, struct device *device, const char *what)
{
    assert(p->device_count < PROFILER_MAX_DEVICES && !p->has_begun);
    p->devices[p->device_count++] = (struct traced){.device = device, .what = what};
}

/* ---- what the trainer's thread is about ---- */

/* Returns its place, from 1; 0: nobody looks, or there are too many. */
static int64_t open_span(struct profiler *p, const char *name, int64_t number)
{
    if (!p->has_begun)
        return 0;
    if (p->span_count == p->setting.max_events) {
        p->lost_spans++;
        return 0;
    }
    if (p->span_count == p->span_capacity) {
        p->span_capacity = p->span_capacity ? 2 * p->span_capacity : 256;
        p->spans = xrealloc(p->spans, (size_t)p->span_capacity * sizeof *p->spans);
    }
    p->spans[p->span_count] =
        (struct host_span){.name = name, .number = number, .begin_ns = clock_monotonic_ns()};
    return ++p->span_count;
}

static void end_span(struct profiler *p, int64_t *span)
{
    if (*span)
        p->spans[*span - 1].end_ns = clock_monotonic_ns();
    *span = 0;
}

void profiler_begin_step(struct profiler *p, int64_t step)
{
    if (p)
        p->step = open_span(p, "ProfilerStep", step);
}

void profiler_phase(struct profiler *p, const char *phase)
{
    if (!p)
        return;
    end_span(p, &p->phase);
    if (p->step && phase)
        p->phase = open_span(p, phase, 0);
}

void profiler_end_step(struct profiler *p, bool was_one)
{
    if (!p)
        return;
    end_span(p, &p->phase);
    if (was_one)
        end_span(p, &p->step);
    p->step = 0; /* without an end it is not warned */
}

/* ---- windows ---- */

void profiler_begin(struct profiler *p)
{
    assert(!p->has_begun);
    p->has_begun = true;
    p->span_count = p->step = p->phase = p->lost_spans = 0;
    for (int i = 0; i < p->device_count; i++) {
        struct traced *d = &p->devices[i];
        struct error why;
        if (device_trace_begin(d->device, p->setting.max_events, p->setting.memory, &why) ||
            d->warned)
            continue;
        log_warning("rank %d: its traces have no kernels: %s", p->setting.rank, why.msg);
        d->warned = true;
    }
}

bool profiler_is_recording(const struct profiler *p)
{
    return p->has_begun;
}

void profiler_discard(struct profiler *p)
{
    for (int i = 0; i < p->device_count; i++)
        device_trace_end(p->devices[i].device, NULL, NULL);
    p->has_begun = false;
    p->span_count = p->step = p->phase = 0;
}

/* ---- writing ---- */

/* Sends what has gathered; after a failure nothing. */
static void flush(struct writing *w, size_t least)
{
    if (w->text.length < least)
        return;
    if (w->result == 0)
        w->result = trace_file_write(w->file, str_text(&w->text), w->text.length, w->err);
    str_clear(&w->text);
}

/* The row of a stream's ranges, or of what a GPU itself records of the stream: its clock is another
 * one, so the two would not nest. */
static struct trace_row row_of(struct writing *w, const struct trace_event *event)
{
    char name[32];
    bool own = !w->is_host && (event->kind == TRACE_OP || event->kind == TRACE_MOVE);
    snprintf(name, sizeof name, "%s%s", event->stream, own ? " (GPU)" : "");
    struct trace_row row = {w->pid, 1};
    for (int i = 0; i < w->row_count; i++, row.tid++)
        if (strcmp(w->rows[i], name) == 0)
            return row;
    if (w->row_count == MAX_ROWS)
        return (struct trace_row){w->pid, MAX_ROWS};
    memcpy(w->rows[w->row_count++], name, sizeof name);
    trace_json_thread(&w->json, row, name);
    return row;
}

static const char *category_of(const struct writing *w, const struct trace_event *event)
{
    switch (event->kind) {
    case TRACE_OP:
        return w->is_host ? "cpu_op" : "kernel";
    case TRACE_WAIT:
        return "wait";
    case TRACE_COPY:
        return "copy";
    case TRACE_MOVE:
        return "gpu_memcpy";
    case TRACE_RANGE:
    case TRACE_MEMORY:
        break;
    }
    return event->range.ranks           ? "collective"
           : event->kind == TRACE_RANGE ? "user_annotation"
                                        : "memory";
}

static void write_event(void *ctx, const struct trace_event *event)
{
    struct writing *w = ctx;
    char name[256];
    if (event->kind == TRACE_MEMORY) {
        snprintf(name, sizeof name, "memory: %s", event->range.what);
        trace_json_bytes(&w->json, w->pid, name, event->begin_ns + w->wall_ns, event->range.bytes);
        flush(w, PIECE_BYTES);
        return;
    }
    struct stream_range named = event->range;
    if (named.ranks) /* a collective's number is no part of its name */
        named.number = 0;
    stream_range_text(&named, name, sizeof name);
    bool is_kernel = event->kind == TRACE_OP && !w->is_host;
    const struct trace_span span = {
        .row = row_of(w, event),
        .category = category_of(w, event),
        .name = is_kernel ? event->range.what : name,
        .begin_ns = event->begin_ns + w->wall_ns,
        .end_ns = event->end_ns + w->wall_ns,
        .bytes = event->range.bytes,
        .number = event->range.number,
        .ranks = event->range.ranks,
    };
    trace_json_span(&w->json, &span);
    flush(w, PIECE_BYTES);
}

static void write_host(struct writing *w)
{
    const struct profiler *p = w->profiler;
    const struct trace_row row = {w->pid, TRAINER_TID};
    trace_json_thread(&w->json, row, "trainer");
    for (int64_t i = 0; i < p->span_count; i++) {
        const struct host_span *s = &p->spans[i];
        char name[64];
        const struct stream_range named = {.what = s->name, .number = s->number};
        stream_range_text(&named, name, sizeof name);
        if (!s->end_ns) /* the run ended within it */
            continue;
        trace_json_span(&w->json, &(struct trace_span){.row = row,
                                                       .category = "user_annotation",
                                                       .name = name,
                                                       .begin_ns = s->begin_ns + w->wall_ns,
                                                       .end_ns = s->end_ns + w->wall_ns,
                                                       .number = s->number});
        flush(w, PIECE_BYTES);
    }
}

/* Ends the device's trace and writes it. Returns how many events had no room. */
static int64_t write_device(struct writing *w, const struct traced *d)
{
    char name[64];
    w->pid++;
    w->is_host = device_is_host(d->device);
    w->row_count = 0;
    snprintf(name, sizeof name, "rank %d: %s", w->profiler->setting.rank, d->what);
    trace_json_process(&w->json, w->pid, name);
    return device_trace_end(d->device, write_event, w);
}

/* The day's beginning, so that all ranks' times count from the same moment. */
static int64_t day_of(int64_t wall_ns)
{
    return wall_ns - wall_ns % (INT64_C(1000000000) * DAY_S);
}

static void write_all(struct writing *w)
{
    struct profiler *p = w->profiler;
    int64_t memory_bytes, lost = p->lost_spans;
    struct device *first = p->devices[0].device;
    device_memory_free_bytes(first, &memory_bytes);
    w->wall_ns = clock_now_ns() - clock_monotonic_ns();
    w->json = (struct trace_json){&w->text, day_of(clock_now_ns())};
    w->pid = PIDS * p->setting.rank + 1; /* 0 is none in some viewers */
    trace_json_begin(&w->json, p->setting.rank, p->setting.world_size, device_name(first),
                     memory_bytes, w->pid);
    write_host(w);
    for (int i = 0; i < p->device_count; i++)
        lost += write_device(w, &p->devices[i]);
    trace_json_end(&w->json);
    flush(w, 1);
    if (lost)
        log_warning("rank %d: its trace lacks %lld events: there is room for %lld of a device; "
                    "trace fewer steps (profiler.active_steps)",
                    p->setting.rank, (long long)lost, (long long)p->setting.max_events);
}

int profiler_write(struct profiler *p, const char *path, bool gzip, struct error *err)
{
    struct writing w = {.profiler = p, .err = err};
    if (trace_file_create(path, gzip, &w.file, err)) {
        profiler_discard(p);
        return -1;
    }
    str_init(&w.text, PIECE_BYTES + EVENT_MAX_BYTES);
    write_all(&w);
    str_free(&w.text);
    p->has_begun = false;
    p->span_count = p->step = p->phase = 0;
    if (w.result == 0)
        return trace_file_finish(w.file, err);
    trace_file_abandon(w.file);
    return -1;
}
