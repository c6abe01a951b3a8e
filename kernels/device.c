/* The door: finds the backend's table and forwards to it. */
#include "kernels/backend.h"
#include "kernels/cuda_library.h"
#include "kernels/trace_log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The backend a name asks for, and the number of the device ("cuda:1"). */
static int find_backend(const char *name, const struct backend **ret_backend, int *ret_index,
                        struct error *err)
{
    *ret_index = 0;
    if (strcmp(name, "cpu") == 0) {
        *ret_backend = &cpu_backend;
        return 0;
    }
    char rest;
    int n = strncmp(name, "cuda", 4) == 0 ? sscanf(name + 4, ":%3d%c", ret_index, &rest) : 0;
    if (strcmp(name, "cuda") == 0 || (n == 1 && *ret_index >= 0))
        return cuda_library(ret_backend, err);
    return error_set(err, ERR_UNSUPPORTED,
                     "no device is called \"%s\": there are cpu, cuda and cuda:N", name);
}

static int scratch_alloc(struct device *device, size_t bytes, void **ret_memory, struct error *err)
{
    return memory_alloc(device->memory, MEMORY_SCRATCH, bytes, "an op's scratch", ret_memory, err);
}

static void scratch_free(struct device *device, void *memory)
{
    memory_free(device->memory, memory);
}

int device_open(const char *name, int threads, struct device **ret_device, struct error *err)
{
    assert(name && threads >= 1);
    const struct backend *backend;
    struct device *device;
    int index;
    if (find_backend(name, &backend, &index, err) < 0)
        return -1;
    /* The backend is a shared object with its own copy of base/log, and so with its own level. */
    if (backend->set_log_level)
        backend->set_log_level(log_get_level());
    if (backend->device_open(index, threads, &device, err) < 0)
        return -1;
    device->backend = backend;
    device->threads = threads;
    device->memory = memory_open(&backend->memory, device);
    device->scratch_alloc = scratch_alloc;
    device->scratch_free = scratch_free;
    *ret_device = device;
    return 0;
}

int device_count_gpus(struct error *ret_reason)
{
    const struct backend *backend;
    if (cuda_library(&backend, ret_reason) == 0)
        return backend->device_count(ret_reason);
    ret_reason->code = ERR_NOT_FOUND;
    return 0;
}

/* ---- the host's side of another device ---- */

static int check_source(struct device *device, struct error *err)
{
    const struct memory_source *source = &device->backend->memory;
    return source->check ? source->check(device, err) : 0;
}

static void *peer_alloc(void *ctx, size_t bytes)
{
    struct device *peer = ((struct device *)ctx)->peer;
    return peer->backend->host_alloc(peer, bytes);
}

static void peer_free(void *ctx, void *block)
{
    struct device *peer = ((struct device *)ctx)->peer;
    peer->backend->host_free(peer, block);
}

static int peer_check(void *ctx, struct error *err)
{
    struct device *peer = ((struct device *)ctx)->peer;
    return check_source(peer, err);
}

/* Streams of both may use the memory. */
static void peer_wait_idle(void *ctx)
{
    struct device *device = ctx;
    device->backend->memory.wait_idle(device);
    device->peer->backend->memory.wait_idle(device->peer);
}

int device_open_host(struct device *peer, int threads, struct device **ret_device,
                     struct error *err)
{
    static const struct memory_source source = {peer_alloc, peer_free, peer_wait_idle, peer_check};
    struct device *device;
    if (device_open("cpu", threads, &device, err) < 0)
        return -1;
    /* Page-locked by the peer's driver: copies to the GPU can then run beside the host. */
    memory_close(device->memory);
    device->peer = peer;
    device->memory = memory_open(&source, device);
    *ret_device = device;
    return 0;
}

void device_close(struct device *device)
{
    if (!device)
        return;
    memory_close(device->memory);
    device->backend->device_close(device);
}

const char *device_name(const struct device *device)
{
    return device->backend->name;
}

const char *device_uuid(const struct device *device)
{
    return device->uuid;
}

const char *device_model(const struct device *device)
{
    return device->model;
}

int device_cuda_version(const struct device *device)
{
    return device->cuda_version;
}

int device_compute_capability(const struct device *device)
{
    return device->compute_capability;
}

int64_t device_library_attentions(const struct device *device)
{
    return device->library_attentions;
}

void device_tune_products(struct device *device)
{
    device->tunes_products = true;
}

void device_product_tuning(const struct device *device, struct product_tuning *ret_tuning)
{
    *ret_tuning = device->tuning;
}

bool device_data_error(const struct device *device, struct error *ret)
{
    return device->backend->data_error && device->backend->data_error(device, ret);
}

bool device_pci(const char *name, char *out)
{
    const struct backend *backend;
    struct error ignored;
    int index;
    return find_backend(name, &backend, &index, &ignored) == 0 && backend->device_pci &&
           backend->device_pci(index, out);
}

bool device_is_host(const struct device *device)
{
    return device->backend->is_host;
}

int64_t device_memory_free_bytes(const struct device *device, int64_t *ret_total)
{
    return device->backend->memory_free_bytes(device, ret_total);
}

int device_host_alloc(struct device *device, size_t bytes, const char *what, void **ret_memory,
                      struct error *err)
{
    *ret_memory = device->backend->host_alloc(device, bytes);
    if (!*ret_memory && check_source(device, err) < 0)
        return error_wrap(err, "host memory for %s", what);
    if (!*ret_memory)
        return error_set(err, ERR_MEMORY, "%s: no %zu bytes of host memory for copies", what,
                         bytes);
    return 0;
}

void device_host_free(struct device *device, void *memory)
{
    if (memory)
        device->backend->host_free(device, memory);
}

bool device_host_register(struct device *device, void *memory, size_t bytes)
{
    return device->backend->host_register(device, memory, bytes);
}

void device_host_unregister(struct device *device, void *memory)
{
    if (memory)
        device->backend->host_unregister(device, memory);
}

int device_reserve(struct device *device, size_t bytes, struct error *err)
{
    return memory_reserve(device->memory, bytes, err);
}

void device_reserve_from(struct device *device, const struct memory_lender *lender)
{
    memory_reserve_from(device->memory, lender);
}

int device_alloc(struct device *device, enum memory_kind kind, size_t bytes, const char *what,
                 void **ret_memory, struct error *err)
{
    int result = memory_alloc(device->memory, kind, bytes, what, ret_memory, err);
    if (device->trace)
        trace_memory(device);
    return result;
}

void device_free(struct device *device, void *memory)
{
    memory_free(device->memory, memory);
    if (device->trace)
        trace_memory(device);
}

void device_memory_use(const struct device *device, struct memory_use *ret_use)
{
    *ret_use = *memory_use(device->memory);
}

void device_memory_reset_peak(struct device *device)
{
    memory_reset_peak(device->memory);
}

void device_memory_set_limit(struct device *device, int64_t bytes)
{
    memory_set_limit(device->memory, bytes);
}

void device_memory_whole_block(const struct device *device, const void **memory, size_t *bytes)
{
    memory_whole_block(device->memory, memory, bytes);
}

void device_memory_on_release(struct device *device,
                              void (*on_release)(void *ctx, void *block, size_t bytes), void *ctx)
{
    memory_on_release(device->memory, on_release, ctx);
}

const struct ops *device_ops(const struct device *device)
{
    return device->backend->ops;
}

static int open_stream(struct device *device, const char *name, bool high_priority,
                       struct stream **ret_stream, struct error *err)
{
    struct stream *stream;
    if (device->backend->stream_open(device, name, high_priority, &stream, err) < 0)
        return -1;
    snprintf(stream->name, sizeof stream->name, "%s", name);
    stream->next = device->streams;
    device->streams = stream;
    *ret_stream = stream;
    return 0;
}

int stream_open(struct device *device, const char *name, struct stream **ret_stream,
                struct error *err)
{
    return open_stream(device, name, false, ret_stream, err);
}

int stream_open_high_priority(struct device *device, const char *name, struct stream **ret_stream,
                              struct error *err)
{
    return open_stream(device, name, true, ret_stream, err);
}

void stream_close(struct stream *stream)
{
    if (!stream)
        return;
    struct stream **link = &stream->device->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->device->backend->stream_close(stream);
}

struct device *stream_device(const struct stream *stream)
{
    return stream->device;
}

void *stream_native(struct stream *stream)
{
    return stream->device->backend->stream_native(stream);
}

int stream_sync(struct stream *stream, struct error *err)
{
    const struct device *device = stream->device;
    int result = device->backend->stream_sync(stream, err);
    return result == 0 && device->check_health ? device->check_health(device->check_health_ctx, err)
                                               : result;
}

void device_set_health_check(struct device *device,
                             int (*check_health)(void *ctx, struct error *err), void *ctx)
{
    device->check_health = check_health;
    device->check_health_ctx = ctx;
}

void stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                 const void *args, size_t bytes)
{
    assert(bytes <= STREAM_CALL_MAX_BYTES);
    stream->device->backend->stream_call(stream, function, args, bytes);
}

void stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes)
{
    bool noted = stream->device->trace && bytes;
    if (noted)
        trace_range_begin(stream, TRACE_COPY,
                          &(struct stream_range){.what = "copy", .bytes = (int64_t)bytes});
    stream->device->backend->stream_copy(stream, dst, src, bytes);
    if (noted)
        trace_range_end(stream);
}

void stream_timestamp(struct stream *stream, int64_t *ret_ns)
{
    stream->device->backend->stream_timestamp(stream, ret_ns);
}

void stream_range_begin(struct stream *stream, const struct stream_range *range)
{
    const struct backend *backend = stream->device->backend;
    if (backend->stream_range_begin)
        backend->stream_range_begin(stream, range);
    if (stream->device->trace)
        trace_range_begin(stream, TRACE_RANGE, range);
}

void stream_range_end(struct stream *stream)
{
    const struct backend *backend = stream->device->backend;
    if (stream->device->trace)
        trace_range_end(stream);
    if (backend->stream_range_end)
        backend->stream_range_end(stream);
}

int event_open(struct device *device, struct event **ret_event, struct error *err)
{
    return device->backend->event_open(device, ret_event, err);
}

void event_close(struct event *event)
{
    if (event)
        event->device->backend->event_close(event);
}

void event_record(struct event *event, struct stream *stream)
{
    event->device->backend->event_record(event, stream);
}

bool event_query(const struct event *event)
{
    return event->device->backend->event_query(event);
}

void stream_wait(struct stream *stream, struct event *event)
{
    assert(stream->device->backend == event->device->backend);
    stream->device->backend->stream_wait(stream, event);
}

int graph_open(struct stream *stream, struct graph **ret_graph, struct error *err)
{
    return stream->device->backend->graph_open(stream, ret_graph, err);
}

static const struct backend *backend_of(const struct graph *graph)
{
    return graph->stream->device->backend;
}

void graph_close(struct graph *graph)
{
    if (graph)
        backend_of(graph)->graph_close(graph);
}

void graph_begin(struct graph *graph)
{
    if (graph)
        backend_of(graph)->graph_begin(graph);
}

void graph_end(struct graph *graph)
{
    if (graph)
        backend_of(graph)->graph_end(graph);
}

void graph_get_use(const struct graph *graph, struct graph_use *ret_use)
{
    backend_of(graph)->graph_get_use(graph, ret_use);
}
