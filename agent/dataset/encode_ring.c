#include "agent/dataset/encode_ring.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct encode_ring {
    encode_function encode;
    void *ctx;
    pthread_t *threads;
    int thread_count;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool stop;
    /* Job i is jobs[i % depth]; oldest <= claimed <= submitted <= oldest + depth. */
    struct encode_job *jobs;
    int64_t depth;
    int64_t oldest, claimed, submitted;
};

static struct encode_job *job_of(struct encode_ring *r, int64_t i)
{
    return &r->jobs[i % r->depth];
}

static void *work(void *ctx)
{
    struct encode_ring *r = ctx;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (r->claimed == r->submitted && !r->stop)
            pthread_cond_wait(&r->work, &r->lock);
        if (r->stop)
            break;
        /* Jobs end in any order, but are taken in that of the rows: how many threads there are does
         * not change the data. */
        struct encode_job *job = job_of(r, r->claimed++);
        pthread_mutex_unlock(&r->lock);
        r->encode(r->ctx, job);
        pthread_mutex_lock(&r->lock);
        job->done = true;
        pthread_cond_signal(&r->done);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int encode_ring_open(int threads, encode_function encode, void *ctx, struct encode_ring **ret_ring,
                     struct error *err)
{
    struct encode_ring *r = xcalloc(1, sizeof *r);
    r->encode = encode;
    r->ctx = ctx;
    r->depth = threads > 0 ? (int64_t)threads * ENCODE_RING_PER_THREAD : 1;
    r->jobs = xcalloc((size_t)r->depth, sizeof *r->jobs);
    r->threads = xcalloc((size_t)threads, sizeof *r->threads);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->done, NULL);
    for (; r->thread_count < threads; r->thread_count++) {
        int failure = pthread_create(&r->threads[r->thread_count], NULL, work, r);
        if (failure) {
            encode_ring_close(r);
            return error_errno(err, failure, "start a thread that tokenizes");
        }
    }
    *ret_ring = r;
    return 0;
}

void encode_ring_close(struct encode_ring *ring)
{
    if (!ring)
        return;
    pthread_mutex_lock(&ring->lock);
    ring->stop = true;
    pthread_cond_broadcast(&ring->work);
    pthread_mutex_unlock(&ring->lock);
    for (int i = 0; i < ring->thread_count; i++)
        pthread_join(ring->threads[i], NULL);
    for (int64_t i = 0; i < ring->depth; i++) {
        free(ring->jobs[i].text);
        tokens_free(&ring->jobs[i].ids);
    }
    pthread_cond_destroy(&ring->work);
    pthread_cond_destroy(&ring->done);
    pthread_mutex_destroy(&ring->lock);
    free(ring->threads);
    free(ring->jobs);
    free(ring);
}

/* Empties a job for the next text. */
static void reset(struct encode_job *job)
{
    /* One huge row must not make each job as large for the rest of the run. */
    if (job->capacity > ENCODE_RING_KEEP_BYTES) {
        free(take(job->text));
        job->capacity = 0;
    }
    if (job->ids.capacity * sizeof *job->ids.ids > ENCODE_RING_KEEP_BYTES)
        tokens_free(&job->ids);
    tokens_clear(&job->ids);
    job->bytes = 0;
    job->bad = job->failed = job->too_long = job->done = false;
}

struct encode_job *encode_ring_free(struct encode_ring *ring)
{
    if (ring->submitted - ring->oldest == ring->depth)
        return NULL;
    struct encode_job *job = job_of(ring, ring->submitted);
    reset(job);
    return job;
}

void encode_job_set_text(struct encode_job *job, const char *text, size_t bytes)
{
    if (bytes > job->capacity) {
        job->capacity = bytes + bytes / 2;
        free(job->text);
        job->text = xmalloc(job->capacity);
    }
    memcpy(job->text, text, bytes);
    job->bytes = bytes;
}

void encode_ring_submit(struct encode_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->submitted++;
    pthread_cond_signal(&ring->work);
    pthread_mutex_unlock(&ring->lock);
}

struct encode_job *encode_ring_oldest(struct encode_ring *ring)
{
    return ring->oldest < ring->submitted ? job_of(ring, ring->oldest) : NULL;
}

void encode_ring_wait(struct encode_ring *ring)
{
    struct encode_job *job = encode_ring_oldest(ring);
    assert(job);
    if (ring->thread_count == 0) {
        if (!job->done)
            ring->encode(ring->ctx, job);
        job->done = true;
        return;
    }
    pthread_mutex_lock(&ring->lock);
    while (!job->done)
        pthread_cond_wait(&ring->done, &ring->lock);
    pthread_mutex_unlock(&ring->lock);
}

void encode_ring_release(struct encode_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    assert(ring->oldest < ring->submitted && job_of(ring, ring->oldest)->done);
    ring->oldest++;
    if (ring->claimed < ring->oldest)
        ring->claimed = ring->oldest; /* without threads nobody claims */
    pthread_mutex_unlock(&ring->lock);
}

void encode_ring_clear(struct encode_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    int64_t claimed = ring->claimed;
    ring->claimed = ring->submitted; /* nobody begins with another */
    for (int64_t i = ring->oldest; i < claimed; i++)
        while (!job_of(ring, i)->done)
            pthread_cond_wait(&ring->done, &ring->lock);
    ring->oldest = ring->submitted;
    pthread_mutex_unlock(&ring->lock);
}
