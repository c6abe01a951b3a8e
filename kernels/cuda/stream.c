/* Streams and events of the CUDA backend. CUDA orders the work; failures of our own go the same
 * ways (progress.h). */
#include "kernels/cuda/stream.h"
#include "base/mem.h"
#include "kernels/cuda/host_calls.h"
#include "kernels/cuda/stream_progress.h"
#include "kernels/cuda/timestamps.h"

#include <nvtx3/nvToolsExtCudaRt.h>
#include <stdlib.h>
#include <string.h>

struct cuda_stream {
    struct stream base;
    cudaStream_t handle;
    struct cuda_graph *graph; /* that takes its ops, or NULL */
    void *scratch;
    size_t scratch_bytes;
    struct host_calls *calls; /* NULL before the first */
    struct stream_progress *progress;
    struct timestamps timestamps;
};

struct cuda_event {
    struct event base;
    cudaEvent_t handle;
    struct stream_progress *source; /* last recorded; a reference; NULL before */
    uint64_t point;
};

static struct cuda_device *device_of(const struct stream *s)
{
    return (struct cuda_device *)s->device;
}

/* ---- what kernels use ---- */

cudaStream_t cuda_captured(struct stream *stream)
{
    const struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_use(device_of(stream));
    if (s->graph)
        cuda_graph_capture(s->graph);
    return s->handle;
}

cudaStream_t cuda_uncaptured(struct stream *stream)
{
    const struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_use(device_of(stream));
    if (s->graph)
        cuda_graph_end_capture(s->graph);
    return s->handle;
}

void cuda_stream_set_graph(struct stream *stream, struct cuda_graph *graph)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    assert(!s->graph || !graph); /* one at a time */
    s->graph = graph;
}

struct cuda_graph *cuda_stream_pause_graph(struct stream *stream)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    struct cuda_graph *graph = s->graph;
    cuda_uncaptured(stream);
    s->graph = NULL;
    return graph;
}

int cuda_multiprocessors(const struct stream *s)
{
    return device_of(s)->multiprocessors;
}

int64_t cuda_shared_bytes(const struct stream *s)
{
    return device_of(s)->shared_bytes;
}

bool cuda_has_matrix_units(const struct stream *s)
{
    return device_of(s)->base.compute_capability >= DEVICE_BF16_CAPABILITY;
}

void cuda_share(struct stream *stream, const void *kernel, int64_t bytes, const char *what)
{
    struct cuda_device *d = device_of(stream);
    size_t i = 0;
    /* More than 48 KiB of shared memory a kernel must be allowed first (CUDA C++ Programming
     * Guide); once is enough. */
    while (i < d->sharing_count && d->sharing[i].kernel != kernel)
        i++;
    if (i < d->sharing_count && d->sharing[i].bytes >= bytes)
        return;
    cuda_use(d);
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    cuda_check(stream, status, what);
    if (status != cudaSuccess || i == CUDA_SHARING_MAX)
        return;
    d->sharing[i] = (struct cuda_sharing){kernel, bytes};
    d->sharing_count += i == d->sharing_count;
}

struct blas *cuda_blas(struct stream *s)
{
    return device_of(s)->blas;
}

struct data_fault *cuda_data_fault(const struct stream *s)
{
    return device_of(s)->fault;
}

struct cudnn *cuda_cudnn(struct stream *s)
{
    return device_of(s)->cudnn;
}

void cuda_check(struct stream *stream, cudaError_t status, const char *what)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    struct error err;
    if (status == cudaSuccess)
        return;
    cuda_error(device_of(stream), &err, status, what);
    stream_progress_fail(s->progress, stream_progress_step(s->progress), &err);
}

void *cuda_scratch(struct stream *stream, size_t bytes)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    if (bytes == 0) /* NULL would say that there is none */
        bytes = 1;
    if (bytes <= s->scratch_bytes)
        return s->scratch;
    /* other streams may still use what comes, and will use what goes */
    struct device *device = stream->device;
    struct error err;
    cuda_streams_wait_idle(device_of(stream));
    device->scratch_free(device, s->scratch);
    s->scratch = NULL;
    s->scratch_bytes = 0;
    if (device->scratch_alloc(device, bytes, &s->scratch, &err) < 0)
        stream_progress_fail(s->progress, stream_progress_step(s->progress), &err);
    else
        s->scratch_bytes = bytes;
    return s->scratch;
}

/* ---- streams ---- */

int cuda_stream_open(struct device *device, const char *name, bool high_priority,
                     struct stream **ret_stream, struct error *err)
{
    struct cuda_stream *s = xcalloc(1, sizeof *s);
    s->base.device = device;
    cuda_use(device_of(&s->base));
    int least = 0, greatest = 0; /* both, where there are none */
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (status == cudaSuccess)
        /* Non-blocking: it does not wait for the default stream, where libraries may work. */
        status = cudaStreamCreateWithPriority(&s->handle, cudaStreamNonBlocking,
                                              high_priority ? greatest : least);
    if (status != cudaSuccess) {
        free(s);
        cuda_error((struct cuda_device *)device, err, status, "make a stream");
        return error_wrap(err, "stream %s", name);
    }
    nvtxNameCudaStreamA(s->handle, name);
    s->progress = stream_progress_open();
    *ret_stream = &s->base;
    return 0;
}

void cuda_stream_close(struct stream *stream)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cudaStreamSynchronize(cuda_uncaptured(stream));
    host_calls_close(s->calls);
    stream_progress_close(s->progress);
    timestamps_close(&s->timestamps);
    stream->device->scratch_free(stream->device, s->scratch);
    cudaStreamDestroy(s->handle);
    free(s);
}

void *cuda_stream_native(struct stream *stream)
{
    return cuda_uncaptured(stream);
}

int cuda_stream_sync(struct stream *stream, struct error *err)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_check(stream, cudaStreamSynchronize(cuda_uncaptured(stream)), "wait for its work");
    bool failed = stream_progress_end(s->progress, err);
    cudaError_t status = timestamps_collect(&s->timestamps, device_of(stream), !failed);
    if (status != cudaSuccess)
        return cuda_error(device_of(stream), err, status, "read its clock");
    return failed ? -1 : 0;
}

void cuda_streams_wait_idle(const struct cuda_device *device)
{
    for (struct stream *s = device->base.streams; s; s = s->next)
        cuda_check(s, cudaStreamSynchronize(cuda_uncaptured(s)), "wait for its work");
}

struct call {
    struct cuda_stream *s;
    uint64_t point;
    int (*function)(void *args, struct error *err);
    _Alignas(16) unsigned char args[STREAM_CALL_MAX_BYTES];
};

static void run_call(void *arg)
{
    struct call *call = arg;
    struct error err = {0};
    if (!stream_progress_has_failed(call->s->progress, call->point) &&
        call->function(call->args, &err) < 0)
        stream_progress_fail(call->s->progress, call->point, &err);
}

void cuda_stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                      const void *args, size_t bytes)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    struct call *call = xcalloc(1, sizeof *call);
    call->s = s;
    call->point = stream_progress_step(s->progress);
    call->function = function;
    if (bytes)
        memcpy(call->args, args, bytes);
    cudaStream_t handle = cuda_uncaptured(stream);
    cudaError_t status = s->calls ? cudaSuccess : host_calls_open(&s->calls);
    if (status == cudaSuccess)
        status = host_calls_launch(s->calls, handle, run_call, call);
    else
        free(call);
    cuda_check(stream, status, "queue a host function");
}

void cuda_stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes)
{
    if (bytes)
        cuda_check(stream,
                   cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, cuda_uncaptured(stream)),
                   "copy");
}

void cuda_stream_timestamp(struct stream *stream, int64_t *ret_ns)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_check(stream, timestamps_record(&s->timestamps, cuda_uncaptured(stream), ret_ns),
               "take the time");
}

/* ---- events ---- */

int cuda_event_open(struct device *device, struct event **ret_event, struct error *err)
{
    struct cuda_event *e = xcalloc(1, sizeof *e);
    e->base.device = device;
    cuda_use((struct cuda_device *)device);
    /* An event without a time is cheaper to record and to wait for (CUDA's runtime API). */
    cudaError_t status = cudaEventCreateWithFlags(&e->handle, cudaEventDisableTiming);
    if (status != cudaSuccess) {
        free(e);
        return cuda_error((struct cuda_device *)device, err, status, "make an event");
    }
    *ret_event = &e->base;
    return 0;
}

void cuda_event_close(struct event *event)
{
    struct cuda_event *e = (struct cuda_event *)event;
    cuda_use((struct cuda_device *)event->device);
    cudaEventDestroy(e->handle);
    stream_progress_unreference(e->source);
    free(e);
}

void cuda_event_record(struct event *event, struct stream *stream)
{
    struct cuda_event *e = (struct cuda_event *)event;
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_check(stream, cudaEventRecord(e->handle, cuda_uncaptured(stream)), "record an event");
    stream_progress_unreference(e->source);
    e->source = stream_progress_reference(s->progress);
    e->point = stream_progress_step(s->progress);
}

/* A GPU in a fault passes nothing any more. From any thread: one that has chosen no device would
 * begin to use GPU 0. */
bool cuda_event_query(const struct event *event)
{
    const struct cuda_event *e = (const struct cuda_event *)event;
    if (!e->source)
        return true;
    cuda_use((struct cuda_device *)event->device);
    cudaError_t status = cudaEventQuery(e->handle);
    cudaGetLastError(); /* "not yet" is no error of this thread's */
    return status != cudaErrorNotReady;
}

void cuda_stream_wait(struct stream *stream, struct event *event)
{
    struct cuda_event *e = (struct cuda_event *)event;
    struct cuda_stream *s = (struct cuda_stream *)stream;
    if (!e->source || e->source == s->progress)
        return; /* a stream is in order with itself */
    cuda_check(stream, cudaStreamWaitEvent(cuda_uncaptured(stream), e->handle, 0),
               "wait for an event");
    stream_progress_wait(s->progress, e->source, e->point);
}
