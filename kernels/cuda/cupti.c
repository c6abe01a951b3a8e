/* CUPTI fills buffers from its own threads; they are kept as they are and read when the trace ends.
 * Its clock is compared with the host's at both ends. */
#include "kernels/cuda/cupti.h"
#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda/cupti_api.h"
#include "kernels/cuda/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BUFFER_BYTES = 1 << 20,
    MOST_BUFFERS = 256, /* then records are dropped: about a million of them are kept */
};

static const int kinds[] = {CUPTI_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET};

struct buffer {
    struct buffer *next;
    size_t valid_bytes;
    _Alignas(16) uint8_t records[BUFFER_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct cupti_api api;
static bool is_loaded;
static const struct device *traced; /* NULL: none */
static struct buffer *full;         /* the last first */
static int buffers;                 /* given out since the trace began */
static struct trace_clock clocks;

/* ---- CUPTI's side ---- */

static void request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_most)
{
    struct buffer *buffer = NULL;
    pthread_mutex_lock(&lock);
    if (buffers < MOST_BUFFERS && (buffer = malloc(sizeof *buffer)))
        buffers++;
    pthread_mutex_unlock(&lock);
    *ret_buffer = buffer ? buffer->records : NULL;
    *ret_bytes = buffer ? BUFFER_BYTES : 0;
    *ret_most = 0;
    /* cppcheck-suppress memleak; complete() gets it back */
}

static void complete(void *context, uint32_t stream, uint8_t *records, size_t bytes,
                     size_t valid_bytes)
{
    (void)context, (void)stream, (void)bytes;
    if (!records)
        return;
    struct buffer *buffer = (struct buffer *)(records - offsetof(struct buffer, records));
    buffer->valid_bytes = valid_bytes;
    pthread_mutex_lock(&lock);
    buffer->next = full;
    full = buffer;
    pthread_mutex_unlock(&lock);
}

static struct buffer *take_buffers(void)
{
    pthread_mutex_lock(&lock);
    struct buffer *taken = full;
    full = NULL;
    buffers = 0;
    pthread_mutex_unlock(&lock);
    return taken;
}

static void free_buffers(struct buffer *buffer)
{
    for (struct buffer *next; buffer; buffer = next) {
        next = buffer->next;
        free(buffer);
    }
}

/* ---- beginning ---- */

static int fail_by(int result, const char *what, struct error *err)
{
    const char *text = NULL;
    const char *advice = result == CUPTI_INSUFFICIENT_PRIVILEGES
                             ? ": the driver lets only root do that (its module's option "
                               "NVreg_RestrictProfilingToAdminUsers=0 lets all)"
                         : result == CUPTI_NOT_INITIALIZED ? ": the driver is too old for it"
                                                           : "";
    api.result_text(result, &text);
    return error_set(err, ERR_UNSUPPORTED, "CUPTI: %s: %s%s", what, text ? text : "?", advice);
}

#define SYMBOL(member, symbol) LIBRARY_SYMBOL(struct cupti_api, member, symbol)

static const struct library_symbol symbols[] = {
    SYMBOL(version, "cuptiGetVersion"),
    SYMBOL(get_timestamp, "cuptiGetTimestamp"),
    SYMBOL(result_text, "cuptiGetResultString"),
    SYMBOL(stream_id, "cuptiGetStreamIdEx"),
    SYMBOL(register_callbacks, "cuptiActivityRegisterCallbacks"),
    SYMBOL(enable, "cuptiActivityEnable"),
    SYMBOL(disable, "cuptiActivityDisable"),
    SYMBOL(flush_all, "cuptiActivityFlushAll"),
    SYMBOL(next_record, "cuptiActivityGetNextRecord"),
    {NULL, 0, false},
};
static const char *const files[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};

static int start(void *library, struct error *err)
{
    if (library_symbols(library, symbols, &api, err))
        return -1;
    int result = api.register_callbacks(request, complete);
    return result == CUPTI_SUCCESS ? 0 : fail_by(result, "begin", err);
}

/* The newest that starts. err: why the newest that is there does not. */
static int load(struct error *err)
{
    bool is_there = false, has_started = false;
    for (size_t i = 0; files[i] && !has_started; i++) {
        const char *const name[] = {files[i], NULL};
        struct error why;
        void *library;
        bool is_open = library_open(name, &library, &why) == 0;
        has_started = is_open && start(library, &why) == 0;
        if (!has_started && (i == 0 || (is_open && !is_there)))
            *err = why;
        is_there |= is_open;
    }
    uint32_t version;
    if (has_started && api.version(&version) == CUPTI_SUCCESS && version == CUPTI_FIRST_OF_13_0)
        log_write(LOG_WARNING, "trace: this CUPTI, of CUDA 13.0, can hang or crash when a trace "
                               "ends: that of 13.0 Update 1 does not");
    return has_started ? 0 : -1;
}

void cupti_describe(struct library_facts *ret)
{
    struct cupti_api functions;
    uint32_t version;
    void *library;
    *ret = (struct library_facts){.name = "CUPTI"};
    if (library_open(files, &library, &ret->why) < 0)
        return;
    snprintf(ret->file, sizeof ret->file, "%s", library_file(library));
    if (library_symbols(library, symbols, &functions, &ret->why) == 0 &&
        functions.version(&version) == CUPTI_SUCCESS)
        snprintf(ret->version, sizeof ret->version, "%u", version);
}

static bool read_clock(void *ctx, int64_t *ret_ns)
{
    (void)ctx;
    uint64_t now_ns;
    if (api.get_timestamp(&now_ns) != CUPTI_SUCCESS)
        return false;
    *ret_ns = (int64_t)now_ns;
    return true;
}

static void disable_all(void)
{
    for (size_t i = 0; i < array_length(kinds); i++)
        api.disable(kinds[i]);
}

static int enable_all(struct error *err)
{
    for (size_t i = 0; i < array_length(kinds); i++) {
        int result = api.enable(kinds[i]);
        if (result == CUPTI_SUCCESS)
            continue;
        disable_all();
        return fail_by(result, "look at kernels", err);
    }
    return 0;
}

/* Makes the device the one that is traced. */
static int claim(const struct device *device, struct error *err)
{
    pthread_mutex_lock(&lock);
    const struct device *before = traced;
    if (!before)
        traced = device;
    pthread_mutex_unlock(&lock);
    return before ? error_set(err, ERR_UNSUPPORTED,
                              "CUPTI serves one device of a process, and looks at another rank's")
                  : 0;
}

static bool is_traced(const struct device *device)
{
    pthread_mutex_lock(&lock);
    bool result = traced == device;
    pthread_mutex_unlock(&lock);
    return result;
}

static void give_up(void)
{
    pthread_mutex_lock(&lock);
    traced = NULL;
    pthread_mutex_unlock(&lock);
}

int cuda_trace_begin(struct device *device, struct error *ret_why)
{
    cuda_use((struct cuda_device *)device);
    if (claim(device, ret_why))
        return -1;
    if (!is_loaded && load(ret_why)) {
        give_up();
        return -1;
    }
    is_loaded = true;
    api.flush_all(CUPTI_FLUSH_FORCED); /* records that came too late for the trace before */
    free_buffers(take_buffers());
    trace_clock_compare(&clocks, 0, read_clock, NULL);
    if (enable_all(ret_why) == 0)
        return 0;
    give_up();
    return -1;
}

/* ---- ending ---- */

/* The device's streams by CUPTI's numbers of them. */
struct names {
    struct {
        uint32_t id;
        const char *name;
    } * all;
    int count;
};

static struct names read_names(const struct device *device)
{
    struct names names = {0};
    int room = 0;
    for (const struct stream *s = device->streams; s; s = s->next)
        room++;
    names.all = xcalloc((size_t)room + 1, sizeof *names.all);
    for (struct stream *s = device->streams; s; s = s->next)
        if (api.stream_id(NULL, cuda_uncaptured(s), 0, &names.all[names.count].id) == CUPTI_SUCCESS)
            names.all[names.count++].name = s->name;
    return names;
}

/* Others' streams have only a number. */
static void name_stream(const struct names *names, uint32_t id, char *out, size_t out_bytes)
{
    for (int i = 0; i < names->count; i++)
        if (names->all[i].id == id) {
            snprintf(out, out_bytes, "%s", names->all[i].name);
            return;
        }
    snprintf(out, out_bytes, "stream %u", id);
}

static const char *name_of_copy(uint8_t copy)
{
    switch (copy) {
    case CUPTI_TO_DEVICE:
        return "Memcpy HtoD";
    case CUPTI_TO_HOST:
        return "Memcpy DtoH";
    case CUPTI_ON_DEVICE:
        return "Memcpy DtoD";
    default:
        return "Memcpy";
    }
}

/* False: the record has no time, or is of another kind. */
static bool read_record(const struct names *names, const int32_t *record,
                        struct trace_event *ret_event)
{
    uint64_t begin, end;
    uint32_t stream;
    *ret_event = (struct trace_event){.kind = TRACE_MOVE};
    if (*record == CUPTI_KERNEL) {
        const struct cupti_kernel *kernel = (const struct cupti_kernel *)record;
        begin = kernel->start, end = kernel->end, stream = kernel->stream;
        ret_event->kind = TRACE_OP;
        ret_event->range.what = kernel->name ? kernel->name : "kernel";
    } else if (*record == CUPTI_MEMCPY || *record == CUPTI_MEMSET) {
        const struct cupti_move *move = (const struct cupti_move *)record;
        begin = move->start, end = move->end, stream = move->stream;
        ret_event->range.bytes = (int64_t)move->bytes;
        ret_event->range.what = *record == CUPTI_MEMCPY ? name_of_copy(move->copy) : "Memset";
    } else {
        return false;
    }
    ret_event->begin_ns = trace_clock_map(&clocks, (int64_t)begin);
    ret_event->end_ns = trace_clock_map(&clocks, (int64_t)end);
    name_stream(names, stream, ret_event->stream, sizeof ret_event->stream);
    return begin && end >= begin;
}

void cuda_trace_end(struct device *device, trace_add *add, void *ctx)
{
    if (!is_traced(device))
        return;
    cuda_use((struct cuda_device *)device);
    disable_all(); /* first: what comes after a flush would be the next trace's */
    api.flush_all(CUPTI_FLUSH_FORCED);
    trace_clock_compare(&clocks, 1, read_clock, NULL);
    struct names names = read_names(device);
    struct buffer *all = take_buffers();
    for (struct buffer *buffer = all; buffer; buffer = buffer->next) {
        struct trace_event event;
        int32_t *record = NULL;
        while (api.next_record(buffer->records, buffer->valid_bytes, &record) == CUPTI_SUCCESS)
            if (read_record(&names, record, &event))
                add(ctx, &event);
    }
    free_buffers(all);
    free(names.all);
    give_up();
}
