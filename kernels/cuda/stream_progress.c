#include "kernels/cuda/stream_progress.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>

/* If `source` fails up to its `point`, we fail at `at`. */
struct wait {
    struct stream_progress *source; /* a reference */
    uint64_t point, at;
};

struct stream_progress {
    struct stream_progress *next; /* of those whose stream is there */
    int references;
    uint64_t points;    /* so far */
    uint64_t passed;    /* up to here all went well */
    uint64_t failed_at; /* the first that failed; 0: none */
    struct error failure;
    struct wait *waits; /* for what may not have passed yet */
    size_t wait_count, wait_capacity;
};

/* Guards all there is. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_progress *first;

/* ---- with the lock held ---- */

static void unreference(struct stream_progress *p)
{
    if (p && !--p->references)
        free(p);
}

static bool has_failed(const struct stream_progress *p, uint64_t point)
{
    return p->failed_at && p->failed_at <= point;
}

/* Fails p where it waited for what has failed. Whether that is news. */
static bool follow_source(struct stream_progress *p, const struct wait *w)
{
    if (!has_failed(w->source, w->point) || has_failed(p, w->at))
        return false;
    p->failed_at = w->at;
    p->failure = w->source->failure;
    return true;
}

static bool follow_sources(struct stream_progress *p)
{
    bool news = false;
    for (size_t i = 0; i < p->wait_count; i++)
        news |= follow_source(p, &p->waits[i]);
    return news;
}

/* Forgets what has passed. */
static void drop_passed(struct stream_progress *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->wait_count; i++) {
        if (p->waits[i].point > p->waits[i].source->passed)
            p->waits[kept++] = p->waits[i];
        else
            unreference(p->waits[i].source);
    }
    p->wait_count = kept;
}

static void drop_waits(struct stream_progress *p)
{
    for (size_t i = 0; i < p->wait_count; i++)
        unreference(p->waits[i].source);
    p->wait_count = 0;
}

/* Some streams are never waited for themselves, but those they wait for are. Half of the room is
 * free then, so the waits are looked through once for as many new ones. */
static void make_room(struct stream_progress *p)
{
    if (p->wait_count < p->wait_capacity)
        return;
    drop_passed(p);
    if (p->wait_count > p->wait_capacity / 2 || !p->wait_capacity) {
        p->wait_capacity = p->wait_capacity ? 2 * p->wait_capacity : 16;
        p->waits = xrealloc(p->waits, p->wait_capacity * sizeof *p->waits);
    }
}

/* ---- the doors ---- */

struct stream_progress *stream_progress_open(void)
{
    struct stream_progress *p = xcalloc(1, sizeof *p);
    p->references = 1;
    pthread_mutex_lock(&lock);
    p->next = first;
    first = p;
    pthread_mutex_unlock(&lock);
    return p;
}

void stream_progress_close(struct stream_progress *p)
{
    pthread_mutex_lock(&lock);
    struct stream_progress **link = &first;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    drop_waits(p);
    free(p->waits);
    p->waits = NULL;
    unreference(p);
    pthread_mutex_unlock(&lock);
}

struct stream_progress *stream_progress_reference(struct stream_progress *p)
{
    pthread_mutex_lock(&lock);
    p->references++;
    pthread_mutex_unlock(&lock);
    return p;
}

void stream_progress_unreference(struct stream_progress *p)
{
    pthread_mutex_lock(&lock);
    unreference(p);
    pthread_mutex_unlock(&lock);
}

uint64_t stream_progress_step(struct stream_progress *p)
{
    pthread_mutex_lock(&lock);
    uint64_t point = ++p->points;
    pthread_mutex_unlock(&lock);
    return point;
}

void stream_progress_wait(struct stream_progress *p, struct stream_progress *source, uint64_t point)
{
    pthread_mutex_lock(&lock);
    make_room(p);
    struct wait *fresh = &p->waits[p->wait_count++];
    *fresh = (struct wait){source, point, ++p->points};
    source->references++;
    follow_source(p, fresh); /* the others were followed when they failed */
    pthread_mutex_unlock(&lock);
}

void stream_progress_fail(struct stream_progress *p, uint64_t at, const struct error *err)
{
    pthread_mutex_lock(&lock);
    if (!has_failed(p, at)) {
        p->failed_at = at;
        p->failure = *err;
        for (bool news = true; news;) {
            news = false;
            for (struct stream_progress *each = first; each; each = each->next)
                news |= follow_sources(each);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool stream_progress_has_failed(struct stream_progress *p, uint64_t point)
{
    pthread_mutex_lock(&lock);
    bool result = has_failed(p, point);
    pthread_mutex_unlock(&lock);
    return result;
}

bool stream_progress_end(struct stream_progress *p, struct error *ret_failure)
{
    pthread_mutex_lock(&lock);
    bool failed = p->failed_at != 0;
    if (failed) {
        *ret_failure = p->failure;
    } else {
        drop_waits(p);
        p->passed = p->points;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}
