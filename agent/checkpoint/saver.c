#include "agent/checkpoint/saver.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct saver {
    struct comm *comm;     /* of its own: the trainer's collectives go on meanwhile */
    struct device *device; /* host memory for the collectives' messages */
    struct stream *stream;
    pthread_t thread;
    bool running;
    atomic_bool ended;
    struct checkpoint_save save;
    int result;
    int64_t bytes;
    struct error err;
};

int saver_open(struct comm *world, struct saver **ret_saver, struct error *err)
{
    struct saver *s = xcalloc(1, sizeof *s);
    if (world->fn->split(world, 0, &s->comm, err) || device_open("cpu", 1, &s->device, err) ||
        stream_open(s->device, "saver", &s->stream, err)) {
        saver_close(s);
        return -1;
    }
    *ret_saver = s;
    return 0;
}

void saver_close(struct saver *s)
{
    if (!s)
        return;
    struct error ignored; /* whoever cares has called saver_finish() */
    int64_t bytes;
    if (s->running)
        saver_finish(s, &bytes, &ignored);
    comm_close(s->comm);
    stream_close(s->stream);
    device_close(s->device);
    free(s);
}

static void *run(void *ctx)
{
    struct saver *s = ctx;
    s->result = checkpoint_save(&s->save, &s->bytes, &s->err);
    /* The last the thread does: whoever sees it joins without waiting. */
    atomic_store(&s->ended, true);
    return NULL;
}

int saver_start(struct saver *s, const struct checkpoint_save *save, struct error *err)
{
    assert(!s->running);
    s->save = *save;
    s->save.comm = s->comm;
    s->save.stream = s->stream;
    atomic_store(&s->ended, false);
    int failure = pthread_create(&s->thread, NULL, run, s);
    if (failure)
        return error_set(err, ERR_IO, "a thread to save with: %s", strerror(failure));
    s->running = true;
    return 0;
}

bool saver_is_running(struct saver *s, bool *ret_ended)
{
    *ret_ended = s->running && atomic_load(&s->ended);
    return s->running;
}

int saver_finish(struct saver *s, int64_t *ret_bytes, struct error *err)
{
    assert(s->running);
    pthread_join(s->thread, NULL);
    s->running = false;
    *ret_bytes = s->bytes;
    if (s->result < 0)
        *err = s->err;
    return s->result;
}
