/* Taking a snapshot. From a device whose memory is not the host's it is copied beside the training
 * (memory_copy.h), and looked through and completed behind that, on a thread of that stream. Memory
 * of the host is copied at once. What is sent to buddies goes beside the training in both cases.
 *
 * The next one is only begun when all ranks have completed this one: it overwrites the one before,
 * which until then may be the newest that all of them have. */
#include "agent/checkpoint/nonfinite.h"
#include "agent/trainer/memory_saver_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct memory_snapshots *memory_saver_own(struct memory_saver *s)
{
    return &s->buddies.kept[s->buddies.group.me];
}

/* Where the rest is done: NULL: at once, and nothing is sent. */
static struct stream *beside(const struct memory_saver *s)
{
    if (s->copy.stream)
        return s->copy.stream;
    return s->buddies.comm ? s->buddies.stream : NULL;
}

/* One rank that does not commit ends the run, as on disk: a step that one of them lacks is of no
 * use to the others. */
static int check_finite(const struct memory_saver *s, const struct host_state *host,
                        struct error *err)
{
    int result = 0;
    if (s->of.checkpointer->of.config->checkpoint.allow_nonfinite)
        return 0;
    for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++)
        result = nonfinite_check(&host->parts[part], err);
    return result;
}

/* An epoch's sums of all ranks: whoever goes on may not be as many. Language models add them up in
 * each step. */
static int describe_sums(const struct memory_saver *s, struct step_sums *sums, struct error *err)
{
    const struct checkpointer_run *of = &s->of.checkpointer->of;
    const size_t bytes = sizeof sums->sums;
    if (of->model_config || s->of.fewest.ranks == 0)
        return 0;
    auto_free char *all = xmalloc((size_t)of->world->size * bytes);
    if (agree_gather(of->world, s->of.stream, sums->sums, all, bytes, err))
        return -1;
    memset(sums->totals, 0, bytes);
    for (int r = 0; r < of->world->size; r++) {
        double its[MODEL_MAX_SUMS];
        memcpy(its, all + (size_t)r * bytes, bytes);
        for (int i = 0; i < MODEL_MAX_SUMS; i++)
            sums->totals[i] += its[i];
    }
    return 0;
}

/* A snapshot whose tensors are there. */
struct copied {
    struct memory_saver *saver;
    int64_t step;
    int slot;
};

static int complete(void *args, struct error *err)
{
    const struct copied *copied = args;
    struct memory_snapshots *own = memory_saver_own(copied->saver);
    if (check_finite(copied->saver, &copied->saver->states[copied->slot], err))
        return -1;
    memory_snapshot_commit(own, copied->step, own->payload_bytes);
    return 0;
}

static int note_begin(void *args, struct error *err)
{
    struct memory_saver *s = *(struct memory_saver **)args;
    (void)err;
    s->sending_us = -s->of.now_us();
    return 0;
}

static int note_end(void *args, struct error *err)
{
    struct memory_saver *s = *(struct memory_saver **)args;
    (void)err;
    s->sending_us += s->of.now_us();
    return 0;
}

/* All but the tensors. */
static int describe(struct memory_saver *s, struct payload *payload, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct checkpoint_state state;
    step_totals_keep(c->of.totals, &payload->sums);
    struct step_sums all = payload->sums;
    if (describe_sums(s, &all, err))
        return -1;
    auto_arena struct arena *arena = arena_open();
    checkpointer_describe(c, all.totals, arena, &state);
    auto_free char *text = checkpoint_state_print(&state);
    if (strlen(text) >= sizeof payload->state)
        return error_set(err, ERR_LIMIT, "the state of the run is longer than %d bytes",
                         MEMORY_TEXT_BYTES);
    snprintf(payload->state, sizeof payload->state, "%s", text);
    return 0;
}

static void send_it(struct memory_saver *s, struct stream *stream, int slot, int64_t step)
{
    stream_call(stream, note_begin, &s, sizeof s);
    memory_buddies_exchange(&s->buddies, stream, slot, step);
    stream_call(stream, note_end, &s, sizeof s);
    event_record(s->completed, stream);
}

static int take_it(struct memory_saver *s, int64_t step, struct error *err)
{
    struct copied copied = {.saver = s, .step = step};
    struct stream *stream = beside(s);
    struct payload *payload = memory_snapshot_begin(memory_saver_own(s), &copied.slot);
    const struct host_state *host = &s->states[copied.slot];
    if (describe(s, payload, err))
        return -1;
    if (s->copy.stream) {
        memory_copy_queue(&s->copy, host);
        stream_call(stream, complete, &copied, sizeof copied);
    } else if (host_state_copy(host, TO_HOST, err) || complete(&copied, err)) {
        return -1;
    }
    s->saved_step = step;
    s->is_under_way = stream != NULL;
    if (stream)
        send_it(s, stream, copied.slot, step);
    return 0;
}

/* This rank's part of it. */
static int finish_own(struct memory_saver *s, struct error *err)
{
    s->is_under_way = false;
    if (stream_sync(beside(s), err)) {
        /* A stream that has failed sends nothing: buddies would wait for that, and never agree. */
        memory_buddies_abort(&s->buddies, "a checkpoint in memory has failed");
        return error_wrap(err, "checkpoint in memory at step %" PRId64, s->saved_step);
    }
    /* A GPU's host has cores to spare, but its next update may have had to wait. */
    if (s->copy.stream && stream_sync(shard_update_stream(s->copy.shard), err))
        return -1;
    s->beside_us = s->copy.stream ? memory_copy_delay_us(&s->copy) : s->sending_us;
    return 0;
}

static int finish(struct memory_saver *s, struct error *err)
{
    const struct checkpointer_run *of = &s->of.checkpointer->of;
    s->beside_us = 0;
    return s->is_under_way ? agree_all(of->world, s->of.stream, finish_own(s, err), err) : 0;
}

int memory_saver_finish(struct memory_saver *s, struct error *err)
{
    if (!s->is_under_way)
        return 0;
    enum rank_phase before = activity_enter(s->of.activity, RANK_SNAPSHOT);
    int result = finish(s, err);
    activity_enter(s->of.activity, before);
    return result;
}

int memory_saver_take(struct memory_saver *s, int64_t step, struct error *err)
{
    enum rank_phase before = activity_enter(s->of.activity, RANK_SNAPSHOT);
    int result = finish(s, err);
    if (result == 0 && take_it(s, step, err))
        result = error_wrap(err, "checkpoint in memory at step %" PRId64, step);
    activity_enter(s->of.activity, before);
    return result;
}

int memory_saver_send_found(struct memory_saver *s, struct error *err)
{
    struct stream *stream = beside(s);
    s->saved_step = s->found.step;
    s->is_under_way = stream != NULL;
    if (stream)
        send_it(s, stream, s->found.slots[s->buddies.group.me], s->found.step);
    return memory_saver_finish(s, err);
}

int memory_saver_look(struct memory_saver *s, struct error *err)
{
    struct error why;
    if (!s->is_under_way || !event_query(s->completed) || stream_sync(beside(s), &why) == 0)
        return 0;
    s->is_under_way = false;
    *err = why;
    return error_wrap(err, "checkpoint in memory at step %" PRId64, s->saved_step);
}

int memory_saver_open_beside(struct memory_saver *s, struct error *err)
{
    struct shard *shard = s->of.checkpointer->of.shard;
    const size_t own_bytes = (size_t)memory_snapshot_bytes(memory_saver_own(s)->payload_bytes);
    if (!device_is_host(stream_device(shard_update_stream(shard))) &&
        memory_copy_open(&s->copy, shard, s->memory, own_bytes, err))
        return -1;
    struct stream *stream = beside(s);
    return stream ? event_open(stream_device(stream), &s->completed, err) : 0;
}

void memory_saver_abandon(struct memory_saver *s)
{
    struct error ignored;
    /* The run ends with a failure: nobody waits for a peer that may be gone. */
    if (s->is_under_way) {
        memory_buddies_abort(&s->buddies, "the run ends");
        (void)stream_sync(beside(s), &ignored);
        s->is_under_way = false;
    }
    event_close(take(s->completed));
}
