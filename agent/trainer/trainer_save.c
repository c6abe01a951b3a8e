/* When and what is saved: a snapshot between two steps, written by the saver. */
#include "agent/config/name_format.h"
#include "agent/trainer/trainer_parts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { FAILED_SAVES_MAX = 2 }; /* in a row: then the run ends, before more is lost */

/* Names the checkpoint of the current position. */
static void name_snapshot(struct trainer *t)
{
    const struct agent_config *c = t->config;
    const struct name_field fields[] = {
        {"prefix", .text = c->checkpoint.prefix},
        {"strategy", .text = shard_strategy_name(t->strategy)},
        {"step", .number = t->cursor.position.step},
        {"epoch", .number = t->cursor.position.epoch + (t->cursor.position.epoch_samples > 0)},
    };
    name_format(c->checkpoint.name_format, fields, array_length(fields), t->snapshot_name,
                sizeof t->snapshot_name);
    snprintf(t->snapshot_path, sizeof t->snapshot_path, "%s/%s", c->checkpoint.dir,
             t->snapshot_name);
    t->save = (struct trainer_save){
        .path = t->snapshot_path,
        .step = t->cursor.position.step,
        .at_epoch_end = t->cursor.position.epoch_samples == 0,
        .epoch = t->cursor.position.epoch,
    };
}

static void describe(struct trainer *t, const double sums[3])
{
    t->snapshot_state = (struct checkpoint_state){
        .epoch = t->cursor.position.epoch,
        .epoch_samples = t->cursor.position.epoch_samples,
        .step = t->cursor.position.step,
        .micro_batches = t->cursor.position.micro_batches,
        .optimizer_steps = optim_steps(t->optim),
        .epoch_loss_sum = sums[0],
        .epoch_correct = sums[1],
        .epoch_rows = sums[2],
        .seed = (uint64_t)t->config->runtime.seed,
        .learning_rate = t->lr,
        .world_size = t->world->size,
        .train_rows = t->cursor.train->samples >= 0 ? t->cursor.train->samples : 0,
        .batch_rows = t->cursor.train->batch_rows,
        .optimizer = optim_kind(t->config->optimizer.name)->name,
        .run = t->run,
        .data =
            t->cursor.position.epoch_samples > 0 /* else at an epoch's beginning, not at an end */
                ? arena_strdup(t->snapshot.arena, source_state(t->cursor.train))
                : "",
    };
    trainer_schedule_describe(&t->schedule, &t->snapshot_state);
    snprintf(t->snapshot_state.strategy, sizeof t->snapshot_state.strategy, "%s",
             shard_strategy_name(t->strategy));
}

static int take_snapshot(struct trainer *t, struct error *err)
{
    double sums[3];
    host_state_close(&t->snapshot);
    host_state_open(t, &t->snapshot);
    if (shard_is_first_replica(t->shard) && host_state_copy(t, &t->snapshot, TO_HOST, err))
        return -1;
    if (step_totals_reduce(&t->totals, sums, err))
        return -1;
    describe(t, sums);
    return 0;
}

static int start(struct trainer *t, struct error *err)
{
    struct checkpoint_save save = {
        .files = &file_ops_system,
        .dir = t->config->checkpoint.dir,
        .name = t->snapshot_name,
        .state = &t->snapshot_state,
        .texts = {[CHECKPOINT_AGENT_CONFIG] = t->place.agent_config,
                  [CHECKPOINT_MODEL_CONFIG] = t->model_config},
    };
    if (shard_is_first_replica(t->shard))
        memcpy(save.parts, t->snapshot.parts, sizeof save.parts);
    return saver_start(t->saver, &save, err);
}

/* On rank 0. What cannot be removed stays: the checkpoints are what counts. */
static void prune(struct trainer *t)
{
    const struct agent_config *c = t->config;
    struct error err;
    if (checkpoint_prune(&file_ops_system, c->checkpoint.dir, t->snapshot_state.step,
                         (int)c->checkpoint.keep_last, &err))
        t->listener->notice(t->listener->ctx, err.msg);
}

static void tell_saved(struct trainer *t, int64_t bytes)
{
    const struct agent_config *c = t->config;
    t->failed_saves = 0;
    t->save.bytes = bytes;
    t->listener->saved(t->listener->ctx, &t->save);
    if (c->checkpoint.keep_last > 0 && t->world->rank == 0)
        prune(t);
}

/* FULL_STATE_DICT: the whole weights beside the slices. Collective. */
static int add_full(struct trainer *t, struct error *err)
{
    if (t->config->checkpoint.state_dict_type != STATE_DICT_FULL)
        return 0;
    auto_free char *path = xasprintf("%s/" CHECKPOINT_FULL "%s", t->snapshot_path,
                                     trainer_is_language(t) ? "" : ".safetensors");
    return trainer_save_model(t, path, err);
}

/* Waits for the save that runs and tells how it went. */
static int finish(struct trainer *t, bool last, struct error *err)
{
    int64_t bytes;
    if (saver_finish(t->saver, &bytes, err) == 0 && add_full(t, err) == 0) {
        tell_saved(t, bytes);
        return 0;
    }
    error_wrap(err, "checkpoint at step %lld", (long long)t->snapshot_state.step);
    t->saved_step = -1;
    bool peers_are_lost = err->code == ERR_PEER || err->code == ERR_TIMEOUT;
    if (last || peers_are_lost || ++t->failed_saves == FAILED_SAVES_MAX)
        return -1;
    t->listener->not_saved(t->listener->ctx, t->snapshot_state.step, err->msg);
    return 0;
}

bool trainer_save_has_ended(struct trainer *t)
{
    bool ended = false;
    return t->saver && saver_is_running(t->saver, &ended) && ended;
}

int trainer_end_save(struct trainer *t, struct error *err)
{
    return finish(t, false, err);
}

int trainer_save(struct trainer *t, enum save_when when, struct error *err)
{
    bool ended, last = when == SAVE_LAST;
    if (!t->saver)
        return 0;
    bool is_this = t->saved_step == t->cursor.position.step; /* what runs, if anything does */
    if (saver_is_running(t->saver, &ended) && (!is_this || last) && finish(t, last && is_this, err))
        return -1;
    if (t->saved_step == t->cursor.position.step)
        return 0;
    profiler_phase(t->profiler, "checkpoint");
    name_snapshot(t);
    t->listener->save_begins(t->listener->ctx, &t->save);
    if (take_snapshot(t, err) || start(t, err))
        return error_wrap(err, "checkpoint at step %lld", (long long)t->cursor.position.step);
    t->saved_step = t->cursor.position.step;
    if (when == SAVE_BESIDE && t->config->checkpoint.async) {
        t->listener->save_goes_on(t->listener->ctx);
        return 0;
    }
    return finish(t, last, err);
}
