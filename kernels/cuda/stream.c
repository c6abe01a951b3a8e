/* Streams and events of the CUDA backend. CUDA orders the work; what it does not know is a failure
 * of ours (a host function that failed), which goes where CUDA's order goes. So a stream's calls,
 * records and waits are numbered points; an event carries the point it was recorded at, and what
 * fails in a stream up to there fails those that waited for it. */
#include "kernels/cuda/stream.h"
#include "base/mem.h"
#include "kernels/cuda/host_calls.h"
#include "kernels/cuda/stamps.h"

#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What events and waits keep of a stream. */
struct progress {
    int references;
    uint64_t points;    /* so far */
    uint64_t failed_at; /* the first that failed; 0: none */
    struct error failure;
};

/* A wait: if `source` fails up to its `point`, we fail at `at`. */
struct wait {
    struct progress *source; /* a reference */
    uint64_t point, at;
};

struct cuda_stream {
    struct stream base;
    struct cuda_stream *next; /* of all */
    cudaStream_t handle;
    struct cuda_graph *graph; /* that takes its ops, or NULL */
    void *scratch;
    size_t scratch_bytes;
    struct host_calls *calls; /* NULL before the first */
    struct progress *progress;
    struct wait *waits; /* since the last sync */
    size_t wait_count, wait_room;
    struct stamps stamps;
};

struct cuda_event {
    struct event base;
    cudaEvent_t handle;
    struct progress *source; /* last recorded; a reference; NULL before */
    uint64_t point;
};

/* Guards the list, and progress and waits of all streams: host functions run on other threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_stream *streams;

static struct cuda_device *device_of(const struct stream *s)
{
    return (struct cuda_device *)s->device;
}

/* ---- failures; lock held in all of these ---- */

static void unreference(struct progress *p)
{
    if (p && !--p->references)
        free(p);
}

static bool has_failed(const struct progress *p, uint64_t point)
{
    return p->failed_at && p->failed_at <= point;
}

/* Fails s where it waited for what has failed. Whether that is news. */
static bool follow_sources(struct cuda_stream *s)
{
    bool news = false;
    for (size_t i = 0; i < s->wait_count; i++) {
        const struct wait *w = &s->waits[i];
        if (!has_failed(w->source, w->point) || has_failed(s->progress, w->at))
            continue;
        s->progress->failed_at = w->at;
        s->progress->failure = w->source->failure;
        news = true;
    }
    return news;
}

/* Point `at` of s failed. */
static void fail(struct cuda_stream *s, uint64_t at, const struct error *err)
{
    if (has_failed(s->progress, at))
        return;
    s->progress->failed_at = at;
    s->progress->failure = *err;
    for (bool news = true; news;) {
        news = false;
        for (struct cuda_stream *each = streams; each; each = each->next)
            news |= follow_sources(each);
    }
}

static void drop_waits(struct cuda_stream *s)
{
    for (size_t i = 0; i < s->wait_count; i++)
        unreference(s->waits[i].source);
    s->wait_count = 0;
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
        cuda_graph_part(s->graph);
    return s->handle;
}

void cuda_stream_set_graph(struct stream *stream, struct cuda_graph *graph)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    assert(!s->graph || !graph); /* one at a time */
    s->graph = graph;
}

int cuda_multiprocessors(const struct stream *s)
{
    return device_of(s)->multiprocessors;
}

int cuda_architecture(const struct stream *s)
{
    return device_of(s)->architecture;
}

int64_t cuda_shared_bytes(const struct stream *s)
{
    return device_of(s)->shared_bytes;
}

struct blas *cuda_blas(struct stream *s)
{
    return device_of(s)->blas;
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
    cuda_error(&err, status, what);
    pthread_mutex_lock(&lock);
    fail(s, ++s->progress->points, &err);
    pthread_mutex_unlock(&lock);
}

void *cuda_scratch(struct stream *stream, size_t bytes)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    if (bytes == 0) /* NULL would say that there is none */
        bytes = 1;
    if (bytes <= s->scratch_bytes)
        return s->scratch;
    cuda_check(stream, cudaStreamSynchronize(cuda_uncaptured(stream)), "grow an op's scratch");
    cudaFree(s->scratch);
    s->scratch = NULL;
    s->scratch_bytes = 0;
    cudaError_t status = cudaMalloc(&s->scratch, bytes);
    if (status == cudaSuccess) {
        s->scratch_bytes = bytes;
        return s->scratch;
    }
    struct error err;
    size_t free_bytes = 0, total_bytes = 0;
    cudaGetLastError();
    cudaMemGetInfo(&free_bytes, &total_bytes);
    error_set(&err, ERR_MEMORY,
              "no device memory for an op's scratch: %zu bytes asked for, %zu free", bytes,
              free_bytes);
    pthread_mutex_lock(&lock);
    fail(s, ++s->progress->points, &err);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- streams ---- */

int cuda_stream_open(struct device *device, const char *name, bool is_first,
                     struct stream **ret_stream, struct error *err)
{
    struct cuda_stream *s = xcalloc(1, sizeof *s);
    s->base.device = device;
    cuda_use(device_of(&s->base));
    int least = 0, greatest = 0; /* both, where there are none */
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (status == cudaSuccess)
        status = cudaStreamCreateWithPriority(&s->handle, cudaStreamNonBlocking,
                                              is_first ? greatest : least);
    if (status != cudaSuccess) {
        free(s);
        cuda_error(err, status, "make a stream");
        return error_wrap(err, "stream %s", name);
    }
    nvtxNameCudaStreamA(s->handle, name);
    s->progress = xcalloc(1, sizeof *s->progress);
    s->progress->references = 1;
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *ret_stream = &s->base;
    return 0;
}

void cuda_stream_close(struct stream *stream)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cudaStreamSynchronize(cuda_uncaptured(stream));
    host_calls_close(s->calls);
    pthread_mutex_lock(&lock);
    struct cuda_stream **link = &streams;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    drop_waits(s);
    unreference(s->progress);
    pthread_mutex_unlock(&lock);
    stamps_close(&s->stamps);
    cudaFree(s->scratch);
    cudaStreamDestroy(s->handle);
    free(s->waits);
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
    pthread_mutex_lock(&lock);
    bool failed = s->progress->failed_at != 0;
    if (failed)
        *err = s->progress->failure;
    else
        drop_waits(s); /* what they waited for did not fail either */
    pthread_mutex_unlock(&lock);
    cudaError_t status = stamps_take(&s->stamps, device_of(stream), !failed);
    if (status != cudaSuccess)
        return cuda_error(err, status, "read its clock");
    return failed ? -1 : 0;
}

/* The device's stream number i, or NULL. */
static struct stream *stream_number(const struct cuda_device *device, int i)
{
    pthread_mutex_lock(&lock);
    struct cuda_stream *s = streams;
    while (s && (device_of(&s->base) != device || i-- > 0))
        s = s->next;
    pthread_mutex_unlock(&lock);
    return s ? &s->base : NULL;
}

void cuda_streams_wait_idle(const struct cuda_device *device)
{
    struct stream *s;
    for (int i = 0; (s = stream_number(device, i)); i++)
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
    pthread_mutex_lock(&lock);
    bool skip = has_failed(call->s->progress, call->point);
    pthread_mutex_unlock(&lock);
    if (!skip && call->function(call->args, &err) < 0) {
        pthread_mutex_lock(&lock);
        fail(call->s, call->point, &err);
        pthread_mutex_unlock(&lock);
    }
}

static uint64_t next_point(struct cuda_stream *s)
{
    pthread_mutex_lock(&lock);
    uint64_t point = ++s->progress->points;
    pthread_mutex_unlock(&lock);
    return point;
}

void cuda_stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                      const void *args, size_t bytes)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    struct call *call = xcalloc(1, sizeof *call);
    call->s = s;
    call->point = next_point(s);
    call->function = function;
    if (bytes)
        memcpy(call->args, args, bytes);
    cudaStream_t handle = cuda_uncaptured(stream);
    cudaError_t status = s->calls ? cudaSuccess : host_calls_open(&s->calls);
    if (status == cudaSuccess)
        status = host_calls_put(s->calls, handle, run_call, call);
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

void cuda_stream_stamp(struct stream *stream, int64_t *ret_ns)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_check(stream, stamps_put(&s->stamps, cuda_uncaptured(stream), ret_ns), "take the time");
}

/* ---- events ---- */

int cuda_event_open(struct device *device, struct event **ret_event, struct error *err)
{
    struct cuda_event *e = xcalloc(1, sizeof *e);
    e->base.device = device;
    cuda_use((struct cuda_device *)device);
    cudaError_t status = cudaEventCreateWithFlags(&e->handle, cudaEventDisableTiming);
    if (status != cudaSuccess) {
        free(e);
        return cuda_error(err, status, "make an event");
    }
    *ret_event = &e->base;
    return 0;
}

void cuda_event_close(struct event *event)
{
    struct cuda_event *e = (struct cuda_event *)event;
    cudaEventDestroy(e->handle);
    pthread_mutex_lock(&lock);
    unreference(e->source);
    pthread_mutex_unlock(&lock);
    free(e);
}

void cuda_event_record(struct event *event, struct stream *stream)
{
    struct cuda_event *e = (struct cuda_event *)event;
    struct cuda_stream *s = (struct cuda_stream *)stream;
    cuda_check(stream, cudaEventRecord(e->handle, cuda_uncaptured(stream)), "record an event");
    pthread_mutex_lock(&lock);
    unreference(e->source);
    e->source = s->progress;
    e->source->references++;
    e->point = ++s->progress->points;
    pthread_mutex_unlock(&lock);
}

void cuda_stream_wait(struct stream *stream, struct event *event)
{
    struct cuda_event *e = (struct cuda_event *)event;
    struct cuda_stream *s = (struct cuda_stream *)stream;
    if (!e->source || e->source == s->progress)
        return; /* a stream is in order with itself */
    cuda_check(stream, cudaStreamWaitEvent(cuda_uncaptured(stream), e->handle, 0),
               "wait for an event");
    pthread_mutex_lock(&lock);
    if (s->wait_count == s->wait_room) {
        s->wait_room = s->wait_room ? 2 * s->wait_room : 16;
        s->waits = xrealloc(s->waits, s->wait_room * sizeof *s->waits);
    }
    s->waits[s->wait_count++] = (struct wait){e->source, e->point, ++s->progress->points};
    e->source->references++;
    follow_sources(s);
    pthread_mutex_unlock(&lock);
}
