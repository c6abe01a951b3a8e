/* Streams and events of the CPU backend. A stream is one worker thread and a ring of closures;
 * `queued` and `done` count them since the stream was opened, so a point in a stream is a number,
 * an event is a stream and a number, and waiting for an event is waiting for the other stream's
 * `done`. The worker sleeps while there is nothing to do: ranks share cores. */
#include "kernels/cpu/stream.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kernels/cpu/matmul.h"
#include "kernels/trace_log.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RING = 1024,          /* closures queued at most; whoever queues more waits */
    SHORT_WAIT_NS = 1000, /* not worth an event of a trace */
};

/* Either run(args), or a wait for `point` of `wait_for`. */
struct closure {
    const char *name; /* of the op; NULL: it is none */
    void (*run)(void *args);
    struct cpu_stream *wait_for; /* a reference */
    uint64_t point;
    _Alignas(16) unsigned char args[CPU_CLOSURE_MAX_BYTES];
};

struct cpu_stream {
    struct stream base;
    atomic_int references; /* its opener's, and those of events and waits */
    pthread_t worker;
    void *scratch; /* the worker's own */
    size_t scratch_bytes;
    struct matmul_cache *products; /* too; NULL before the first */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* queued or closing changed: the worker waits for it */
    pthread_cond_t moved; /* done passed `awaited`: everybody else waits for it */
    uint64_t awaited;     /* the first point somebody waits for; UINT64_MAX: nobody */
    bool idle;            /* the worker waits for `work` */
    bool closing;
    uint64_t queued, done;
    uint64_t failed_at; /* the point whose closure failed; 0: none has */
    struct error failure;
    struct closure ring[RING];
};

struct cpu_event {
    struct event base;
    struct cpu_stream *stream; /* last recorded; a reference; NULL before */
    uint64_t point;
};

static void unreference(struct cpu_stream *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) > 1)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->moved);
    free(s->scratch);
    matmul_cache_close(s->products);
    free(s);
}

/* Waits until `point` is done; lock held. */
static void await_point(struct cpu_stream *s, uint64_t point)
{
    while (s->done < point) {
        if (point < s->awaited)
            s->awaited = point;
        pthread_cond_wait(&s->moved, &s->lock);
    }
}

/* The failure of `other` up to `point` is ours too. */
static void wait_for_point(struct cpu_stream *s, struct cpu_stream *other, uint64_t point)
{
    struct error failure = {0};
    pthread_mutex_lock(&other->lock);
    await_point(other, point);
    if (other->failed_at && other->failed_at <= point)
        failure = other->failure;
    pthread_mutex_unlock(&other->lock);
    if (failure.code)
        cpu_fail(&s->base, &failure);
}

static void do_closure(struct cpu_stream *s, struct closure *c)
{
    if (c->wait_for)
        wait_for_point(s, c->wait_for, c->point);
    else
        c->run(c->args);
}

/* A wait that is over when it begins is no event. */
static void note_closure(struct cpu_stream *s, struct closure *c)
{
    int64_t begin_ns = clock_monotonic_ns();
    do_closure(s, c);
    int64_t end_ns = clock_monotonic_ns();
    if (c->wait_for ? end_ns - begin_ns < SHORT_WAIT_NS : !c->name)
        return;
    struct trace_event *event =
        trace_add_event(s->base.device->trace, c->wait_for ? TRACE_WAIT : TRACE_OP, s->base.name);
    if (!event)
        return;
    event->begin_ns = begin_ns;
    event->end_ns = end_ns;
    event->range.what = c->wait_for ? "wait" : c->name + strlen("cpu_");
}

static void run_closure(struct cpu_stream *s, struct closure *c, bool skip)
{
    if (!skip && s->base.device->trace)
        note_closure(s, c);
    else if (!skip)
        do_closure(s, c);
    unreference(c->wait_for);
}

static void *work(void *arg)
{
    struct cpu_stream *s = arg;
    omp_set_num_threads(s->base.device->threads);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->done == s->queued && !s->closing) {
            s->idle = true;
            pthread_cond_wait(&s->work, &s->lock);
            s->idle = false;
        }
        if (s->done == s->queued)
            break;
        /* The slot is the worker's until `done` passes it. */
        struct closure *c = &s->ring[s->done % RING];
        bool skip = s->failed_at != 0;
        pthread_mutex_unlock(&s->lock);
        run_closure(s, c, skip);
        pthread_mutex_lock(&s->lock);
        s->done++;
        if (s->done >= s->awaited) {
            s->awaited = UINT64_MAX; /* who waits for more says so again */
            pthread_cond_broadcast(&s->moved);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* The next free slot; lock held. */
static struct closure *reserve(struct cpu_stream *s)
{
    if (s->queued - s->done == RING) /* wake up for half a ring, not for every slot */
        await_point(s, s->queued - RING / 2);
    struct closure *c = &s->ring[s->queued % RING];
    c->wait_for = NULL;
    return c;
}

static void commit(struct cpu_stream *s)
{
    s->queued++;
    if (s->idle)
        pthread_cond_signal(&s->work);
}

void cpu_queue(struct stream *stream, const char *name, void (*run)(void *args), const void *args,
               size_t bytes)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    assert(bytes <= CPU_CLOSURE_MAX_BYTES);
    pthread_mutex_lock(&s->lock);
    struct closure *c = reserve(s);
    c->name = name;
    c->run = run;
    memcpy(c->args, args, bytes);
    commit(s);
    pthread_mutex_unlock(&s->lock);
}

void cpu_fail(struct stream *stream, const struct error *err)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    assert(err->code != ERR_NONE);
    pthread_mutex_lock(&s->lock);
    if (!s->failed_at) {
        /* The closure that runs now: what was queued behind it is skipped, and events behind it
         * carry the failure on. */
        s->failed_at = s->done + 1;
        s->failure = *err;
    }
    pthread_mutex_unlock(&s->lock);
}

void *cpu_scratch(struct stream *stream, size_t bytes)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    if (s->scratch_bytes < bytes) {
        free(s->scratch);
        s->scratch_bytes = (bytes + 63) / 64 * 64;
        s->scratch = aligned_alloc(64, s->scratch_bytes);
        assert(s->scratch);
    }
    return s->scratch;
}

struct matmul_cache *cpu_matmul_cache(struct stream *stream)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    if (!s->products)
        s->products = matmul_cache_open();
    return s->products;
}

int cpu_stream_open(struct device *device, const char *name, bool high_priority,
                    struct stream **ret_stream, struct error *err)
{
    (void)high_priority; /* a thread of its own, to which the system gives its share */
    struct cpu_stream *s = xcalloc(1, sizeof *s);
    s->base.device = device;
    s->awaited = UINT64_MAX;
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->moved, NULL);
    int failure = pthread_create(&s->worker, NULL, work, s);
    if (failure) {
        unreference(s);
        return error_errno(err, failure, "start thread of stream %s", name);
    }
    char short_name[16]; /* the kernel's limit */
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(s->worker, short_name);
    *ret_stream = &s->base;
    return 0;
}

void cpu_stream_close(struct stream *stream)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->worker, NULL);
    unreference(s);
}

void *cpu_stream_native(struct stream *stream)
{
    (void)stream;
    return NULL;
}

int cpu_stream_sync(struct stream *stream, struct error *err)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    pthread_mutex_lock(&s->lock);
    await_point(s, s->queued);
    bool failed = s->failed_at != 0;
    if (failed)
        *err = s->failure;
    pthread_mutex_unlock(&s->lock);
    return failed ? -1 : 0;
}

struct call_args {
    struct stream *s;
    int (*function)(void *args, struct error *err);
    _Alignas(16) unsigned char args[STREAM_CALL_MAX_BYTES];
};

static void call_run(void *args)
{
    struct call_args *a = args;
    struct error err = {0};
    if (a->function(a->args, &err) < 0)
        cpu_fail(a->s, &err);
}

void cpu_stream_call(struct stream *s, int (*function)(void *args, struct error *err),
                     const void *args, size_t bytes)
{
    struct call_args call = {.s = s, .function = function};
    if (bytes)
        memcpy(call.args, args, bytes);
    cpu_queue(s, __func__, call_run, &call, sizeof call);
}

struct copy_args {
    void *dst;
    const void *src;
    size_t bytes;
};

static void copy_run(void *args)
{
    const struct copy_args *a = args;
    memcpy(a->dst, a->src, a->bytes);
}

void cpu_stream_copy(struct stream *s, void *dst, const void *src, size_t bytes)
{
    if (bytes) /* stream_copy() has noted it */
        cpu_queue(s, NULL, copy_run, &(struct copy_args){dst, src, bytes},
                  sizeof(struct copy_args));
}

struct stamp_args {
    int64_t *ns;
};

static void stamp_run(void *args)
{
    *((const struct stamp_args *)args)->ns = clock_monotonic_ns();
}

void cpu_stream_timestamp(struct stream *s, int64_t *ret_ns)
{
    cpu_queue(s, NULL, stamp_run, &(struct stamp_args){ret_ns}, sizeof(struct stamp_args));
}

int cpu_event_open(struct device *device, struct event **ret_event, struct error *err)
{
    (void)err;
    struct cpu_event *event = xcalloc(1, sizeof *event);
    event->base.device = device;
    *ret_event = &event->base;
    return 0;
}

void cpu_event_close(struct event *event)
{
    unreference(((struct cpu_event *)event)->stream);
    free(event);
}

void cpu_event_record(struct event *event, struct stream *stream)
{
    struct cpu_event *e = (struct cpu_event *)event;
    struct cpu_stream *s = (struct cpu_stream *)stream;
    atomic_fetch_add(&s->references, 1);
    unreference(e->stream);
    e->stream = s;
    pthread_mutex_lock(&s->lock);
    e->point = s->queued;
    pthread_mutex_unlock(&s->lock);
}

bool cpu_event_query(const struct event *event)
{
    const struct cpu_event *e = (const struct cpu_event *)event;
    if (!e->stream)
        return true;
    pthread_mutex_lock(&e->stream->lock);
    bool has_passed = e->stream->done >= e->point;
    pthread_mutex_unlock(&e->stream->lock);
    return has_passed;
}

void cpu_stream_wait(struct stream *stream, struct event *event)
{
    struct cpu_stream *s = (struct cpu_stream *)stream;
    const struct cpu_event *e = (struct cpu_event *)event;
    if (!e->stream || e->stream == s)
        return; /* a stream is in order with itself */
    atomic_fetch_add(&e->stream->references, 1);
    pthread_mutex_lock(&s->lock);
    struct closure *c = reserve(s);
    c->wait_for = e->stream;
    c->point = e->point;
    commit(s);
    pthread_mutex_unlock(&s->lock);
}

void cpu_streams_wait_idle(const struct device *device)
{
    struct error ignored; /* a failed stream is idle too */
    for (struct stream *s = device->streams; s; s = s->next)
        (void)cpu_stream_sync(s, &ignored);
}
