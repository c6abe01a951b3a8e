#include "agent/dataset/token_loader.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { ACTIVITY_BYTES = 300 };

struct slot {
    int32_t *ids, *targets; /* [B, T] */
    int64_t rows, samples, counted;
    struct token_position behind;
};

struct token_loader {
    struct token_loader_options o;
    struct token_source *source; /* the thread's while it runs, but for its activity */
    struct slot *slots;          /* [depth] batch i of a start is in slots[i % depth] */
    int64_t depth;
    pthread_t thread;
    bool running;                 /* there is a thread to join */
    struct token_position behind; /* the batch handed out last */
    pthread_mutex_t lock;         /* of what follows */
    pthread_cond_t ready, space;
    int64_t made, taken, given_back; /* batches since the start */
    bool stop, ended, failed;        /* ended, failed: the thread makes no more */
    struct error err;
};

static int64_t global_rows(const struct token_loader *l)
{
    return l->o.batch_rows * l->o.world_size;
}

static int too_small(const struct token_loader *l, int64_t samples, struct error *err)
{
    return error_set(err, ERR_INPUT,
                     "%s: %lld samples of %lld ids; one batch of all ranks takes %lld (%d x %lld): "
                     "bring more data, or take fewer ranks, smaller batches or a smaller "
                     "data.max_seq_length",
                     token_source_name(l->source), (long long)samples, (long long)l->o.window,
                     (long long)global_rows(l), l->o.world_size, (long long)l->o.batch_rows);
}

/* ---- the thread ---- */

static void fill(int32_t *ids, int32_t value, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = value;
}

static bool is_stopped(struct token_loader *l)
{
    pthread_mutex_lock(&l->lock);
    bool stop = l->stop;
    pthread_mutex_unlock(&l->lock);
    return stop;
}

/* The next global batch: this rank's rows, the others' skipped. A stop ends it early. */
static int make_batch(struct token_loader *l, struct slot *s, struct error *err)
{
    int64_t T = l->o.window, B = l->o.batch_rows;
    bool end = false;
    s->rows = s->samples = s->counted = 0;
    for (int64_t i = 0; i < global_rows(l) && !end && !is_stopped(l); i++) {
        bool mine = i % l->o.world_size == l->o.rank;
        int64_t at = s->rows * T;
        if (token_source_next(l->source, mine ? s->ids + at : NULL, mine ? s->targets + at : NULL,
                              &end, err) < 0)
            return -1;
        s->rows += mine && !end;
        s->samples += !end;
    }
    fill(s->ids + s->rows * T, 0, (B - s->rows) * T);
    fill(s->targets + s->rows * T, TOKENS_IGNORED, (B - s->rows) * T);
    for (int64_t i = 0; i < s->rows * T; i++)
        s->counted += s->targets[i] != TOKENS_IGNORED;
    token_source_tell(l->source, &s->behind);
    return 0;
}

/* With the lock: what a batch that was made means. */
static void judge(struct token_loader *l, const struct slot *s, int result, const struct error *err)
{
    bool full = s->samples == global_rows(l);
    bool small = !full && s->behind.sample == s->samples; /* it is all of the epoch */
    if (result < 0) {
        l->failed = true;
        l->err = *err;
    } else if (small && !l->o.may_be_small) {
        l->failed = true;
        too_small(l, s->samples, &l->err);
    } else if (s->samples == 0 || (!full && l->o.drop_last)) {
        l->ended = true;
    } else {
        l->made++;
        l->ended = !full;
    }
}

static void *work(void *ctx)
{
    struct token_loader *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->ended && !l->failed) {
        if (l->made - l->given_back == l->depth) {
            pthread_cond_wait(&l->space, &l->lock);
            continue;
        }
        struct slot *s = &l->slots[l->made % l->depth];
        struct error err;
        pthread_mutex_unlock(&l->lock);
        int result = make_batch(l, s, &err);
        pthread_mutex_lock(&l->lock);
        if (!l->stop)
            judge(l, s, result, &err);
        pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void stop_thread(struct token_loader *l)
{
    if (!l->running)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->space);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->running = false;
}

/* The source stands where the thread is to begin. */
static int start_thread(struct token_loader *l, struct error *err)
{
    l->made = l->taken = l->given_back = 0;
    l->stop = l->ended = l->failed = false;
    token_source_tell(l->source, &l->behind);
    int failure = pthread_create(&l->thread, NULL, work, l);
    if (failure)
        return error_errno(err, failure, "start the thread that loads data");
    l->running = true;
    return 0;
}

/* ---- the step's side ---- */

static int check_sizes(const struct token_loader *l, struct error *err)
{
    const struct token_loader_options *o = &l->o;
    int64_t ids = o->batch_rows * o->window, samples = token_source_samples(l->source);
    if (l->depth > TOKEN_LOADER_MAX_BATCHES || o->batch_rows > TOKEN_LOADER_MAX_BYTES ||
        ids > TOKEN_LOADER_MAX_BYTES / (2 * (int64_t)sizeof(int32_t)) / l->depth)
        return error_set(err, ERR_CONFIG,
                         "%lld batches of %lld x %lld ids are too many to keep ready: at most %d, "
                         "and %lld MiB: lower data.prefetch_factor, data.num_workers or the batch",
                         (long long)l->depth, (long long)o->batch_rows, (long long)o->window,
                         TOKEN_LOADER_MAX_BATCHES, (long long)(TOKEN_LOADER_MAX_BYTES >> 20));
    if (samples >= 0 && samples < global_rows(l) && !o->may_be_small)
        return too_small(l, samples, err);
    return 0;
}

int token_loader_open(struct token_source *source, const struct token_loader_options *options,
                      struct token_loader **ret_loader, struct error *err)
{
    assert(options->rank >= 0 && options->rank < options->world_size);
    assert(options->batch_rows >= 1 && options->held >= 1 && options->ahead >= 1);
    struct token_loader *l = xcalloc(1, sizeof *l);
    l->o = *options;
    l->source = source;
    l->depth = options->held + options->ahead;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->ready);
    pthread_cond_init(&l->space, NULL);
    if (check_sizes(l, err) < 0) {
        token_loader_close(l);
        return -1;
    }
    size_t bytes = (size_t)(options->batch_rows * options->window) * sizeof(int32_t);
    l->slots = xcalloc((size_t)l->depth, sizeof *l->slots);
    for (int64_t i = 0; i < l->depth; i++) {
        l->slots[i].ids = xmalloc(bytes);
        l->slots[i].targets = xmalloc(bytes);
    }
    *ret_loader = l;
    return 0;
}

void token_loader_close(struct token_loader *loader)
{
    if (!loader)
        return;
    stop_thread(loader);
    token_source_close(loader->source);
    for (int64_t i = 0; i < loader->depth && loader->slots; i++) {
        free(loader->slots[i].ids);
        free(loader->slots[i].targets);
    }
    free(loader->slots);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->space);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

struct token_source *token_loader_source(struct token_loader *loader)
{
    return loader->source;
}

int token_loader_start(struct token_loader *loader, int64_t epoch, int64_t samples,
                       struct error *err)
{
    int64_t skipped;
    stop_thread(loader);
    if (token_source_set_epoch(loader->source, epoch, err) < 0 ||
        token_source_skip(loader->source, samples, &skipped, err) < 0)
        return -1;
    return start_thread(loader, err);
}

int token_loader_resume(struct token_loader *loader, const struct token_position *position,
                        struct error *err)
{
    stop_thread(loader);
    if (token_source_seek(loader->source, position, err) < 0)
        return -1;
    return start_thread(loader, err);
}

static int stalled(struct token_loader *l, struct error *err)
{
    char doing[ACTIVITY_BYTES];
    token_source_activity(l->source, doing, sizeof doing);
    return error_set(err, ERR_TIMEOUT,
                     "no batch within %g s (data.loader_timeout): the loader is %s", l->o.timeout_s,
                     doing);
}

/* Waits until there is a batch or there will be none; with the lock. */
static bool wait_ready(struct token_loader *l)
{
    int64_t deadline_ms = INT64_MAX;
    if (l->o.timeout_s > 0 && l->o.timeout_s < 1e12)
        deadline_ms = clock_monotonic_ms() + (int64_t)ceil(l->o.timeout_s * 1000);
    while (l->taken == l->made && !l->ended && !l->failed) {
        if (deadline_ms == INT64_MAX)
            pthread_cond_wait(&l->ready, &l->lock);
        else if (!cond_wait_until(&l->ready, &l->lock, deadline_ms))
            break;
    }
    return l->taken < l->made || l->ended || l->failed;
}

int token_loader_next(struct token_loader *loader, struct token_batch *ret_batch, bool *ret_end,
                      struct error *err)
{
    struct token_loader *l = loader;
    assert(l->running && l->taken - l->given_back < l->o.held);
    pthread_mutex_lock(&l->lock);
    bool ready = wait_ready(l), has_batch = l->taken < l->made, failed = l->failed;
    const struct slot *s = &l->slots[l->taken % l->depth];
    l->taken += has_batch;
    pthread_mutex_unlock(&l->lock);
    if (!ready)
        return stalled(l, err);
    *ret_end = !has_batch;
    if (has_batch) {
        l->behind = s->behind;
        *ret_batch = (struct token_batch){.ids = s->ids,
                                          .targets = s->targets,
                                          .rows = s->rows,
                                          .samples = s->samples,
                                          .counted = s->counted};
    } else if (failed) {
        *err = l->err; /* the thread is done with it */
        return -1;
    }
    return 0;
}

void token_loader_release(struct token_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->given_back = loader->taken;
    pthread_cond_signal(&loader->space);
    pthread_mutex_unlock(&loader->lock);
}

void token_loader_tell(const struct token_loader *loader, struct token_position *ret_position)
{
    *ret_position = loader->behind;
}
