#include "agent/trainer/checkpointer.h"

#include "agent/config/name_format.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FAILED_SAVES_MAX = 2 }; /* in a row: then the run ends, before more is lost */

void checkpointer_init(struct checkpointer *c)
{
    *c = (struct checkpointer){.saved_step = -1, .dir_lock = -1, .run = ""};
}

int checkpointer_open(struct checkpointer *c, const struct checkpointer_run *run, struct comm *host,
                      struct error *err)
{
    c->of = *run;
    return c->of.config->checkpoint.dir[0] ? saver_open(host, &c->saver, err) : 0;
}

void checkpointer_close(struct checkpointer *c)
{
    saver_close(c->saver);
    host_state_close(&c->snapshot);
    if (c->dir_lock >= 0)
        close(c->dir_lock);
    checkpointer_init(c);
}

/* Names the checkpoint of the current position. */
static void name_snapshot(struct checkpointer *c)
{
    const struct agent_config *config = c->of.config;
    const struct data_position *at = &c->of.cursor->position;
    const struct name_field fields[] = {
        {"prefix", .text = config->checkpoint.prefix},
        {"strategy", .text = c->of.strategy},
        {"step", .number = at->step},
        {"epoch", .number = at->epoch + (at->epoch_samples > 0)},
    };
    name_format(config->checkpoint.name_format, fields, array_length(fields), c->name,
                sizeof c->name);
    snprintf(c->path, sizeof c->path, "%s/%s", config->checkpoint.dir, c->name);
    c->save = (struct trainer_save){
        .path = c->path,
        .step = at->step,
        .at_epoch_end = at->epoch_samples == 0,
        .epoch = at->epoch,
    };
}

static void describe_schedule(const struct schedule *schedule, struct checkpoint_state *state)
{
    snprintf(state->schedule_type, sizeof state->schedule_type, "%s",
             schedule_type_name(schedule->type));
    state->peak_lr = schedule->lr;
    state->min_lr = schedule->min_lr;
    state->warmup_ratio = schedule->warmup_ratio;
    state->warmup_steps = schedule->warmup_steps;
    state->decay_steps = schedule->decay_steps;
}

void checkpointer_describe(const struct checkpointer *c, const double sums[3], struct arena *arena,
                           struct checkpoint_state *ret_state)
{
    const struct data_position *at = &c->of.cursor->position;
    struct batch_source *train = c->of.cursor->train;
    *ret_state = (struct checkpoint_state){
        .epoch = at->epoch,
        .epoch_samples = at->epoch_samples,
        .step = at->step,
        .micro_batches = at->micro_batches,
        .optimizer_steps = optim_steps(c->of.optim),
        .epoch_loss_sum = sums[0],
        .epoch_correct = sums[1],
        .epoch_rows = sums[2],
        .seed = (uint64_t)c->of.config->runtime.seed,
        .learning_rate = *c->of.lr,
        .world_size = c->of.world->size,
        .reduction_slots = c->of.reduction_slots,
        .nondeterministic = c->of.may_differ,
        .evaluation_owed = at->owes_evaluation,
        .train_rows = train->samples >= 0 ? train->samples : 0,
        .batch_rows = train->batch_rows,
        .optimizer = optim_kind(c->of.config->optimizer.name)->name,
        .run = c->run,
        .data = "", /* at an epoch's beginning, not at an end */
    };
    if (at->epoch_samples > 0)
        ret_state->data = arena_strdup(arena, data_cursor_state(c->of.cursor));
    describe_schedule(c->of.schedule, ret_state);
    snprintf(ret_state->strategy, sizeof ret_state->strategy, "%s", c->of.strategy);
}

static int take_snapshot(struct checkpointer *c, struct error *err)
{
    double sums[3];
    /* A copy in host memory: training goes on and changes the weights while the copy is written. */
    host_state_close(&c->snapshot);
    host_state_open(c->of.shard, c->of.optim, NULL, &c->snapshot);
    if (shard_is_first_replica(c->of.shard) && host_state_copy(&c->snapshot, TO_HOST, err))
        return -1;
    if (step_totals_reduce(c->of.totals, sums, err))
        return -1;
    checkpointer_describe(c, sums, c->snapshot.arena, &c->state);
    return 0;
}

static int start(struct checkpointer *c, struct error *err)
{
    struct checkpoint_save save = {
        .files = &file_ops_system,
        .dir = c->of.config->checkpoint.dir,
        .name = c->name,
        .state = &c->state,
        .allow_nonfinite = c->of.config->checkpoint.allow_nonfinite,
        .texts = {[CHECKPOINT_AGENT_CONFIG] = c->of.agent_config,
                  [CHECKPOINT_MODEL_CONFIG] = c->of.model_config},
    };
    if (shard_is_first_replica(c->of.shard))
        memcpy(save.parts, c->snapshot.parts, sizeof save.parts);
    return saver_start(c->saver, &save, err);
}

/* On rank 0. What cannot be removed stays: the checkpoints are what counts. */
static void prune(struct checkpointer *c)
{
    const struct agent_config *config = c->of.config;
    struct error err;
    if (checkpoint_prune(&file_ops_system, config->checkpoint.dir, c->state.step,
                         (int)config->checkpoint.keep_last, &err))
        c->of.listener->notice(c->of.listener->ctx, err.msg);
}

static void report_saved(struct checkpointer *c, int64_t bytes)
{
    const struct agent_config *config = c->of.config;
    c->failed_saves = 0;
    c->save.bytes = bytes;
    c->of.listener->saved(c->of.listener->ctx, &c->save);
    if (config->checkpoint.keep_last > 0 && c->of.world->rank == 0)
        prune(c);
}

/* FULL_STATE_DICT: the whole weights beside the slices. Collective. */
static int add_full(struct checkpointer *c, struct error *err)
{
    if (c->of.config->checkpoint.state_dict_type != STATE_DICT_FULL)
        return 0;
    auto_free char *path =
        xasprintf("%s/" CHECKPOINT_FULL "%s", c->path, c->of.model_config ? "" : ".safetensors");
    return c->of.save_model(c->of.ctx, path, err);
}

/* Waits for the save that runs and reports how it went. */
static int finish(struct checkpointer *c, bool last, struct error *err)
{
    int64_t bytes;
    if (saver_finish(c->saver, &bytes, err) == 0 && add_full(c, err) == 0) {
        report_saved(c, bytes);
        return 0;
    }
    error_wrap(err, "checkpoint at step %lld", (long long)c->state.step);
    c->saved_step = -1;
    /* A full disk may have room for the next save, so one failure is only reported. A lost rank
     * or GPU does not come back, and NaN does not become a number again: steps from there on are
     * waste. */
    bool is_final = err->code == ERR_PEER || err->code == ERR_DEVICE || err->code == ERR_TIMEOUT ||
                    err->code == ERR_DIVERGED;
    if (last || is_final || ++c->failed_saves == FAILED_SAVES_MAX)
        return -1;
    c->of.listener->save_failed(c->of.listener->ctx, c->state.step, err->msg);
    return 0;
}

bool checkpointer_save_has_ended(struct checkpointer *c)
{
    bool ended = false;
    return c->saver && saver_is_running(c->saver, &ended) && ended;
}

int checkpointer_end_save(struct checkpointer *c, struct error *err)
{
    return finish(c, false, err);
}

int checkpointer_save(struct checkpointer *c, enum save_when when, struct error *err)
{
    bool ended, last = when == SAVE_LAST;
    if (!c->saver)
        return 0;
    bool is_this = c->saved_step == c->of.cursor->position.step; /* what runs, if anything does */
    if (saver_is_running(c->saver, &ended) && (!is_this || last) && finish(c, last && is_this, err))
        return -1;
    if (c->saved_step == c->of.cursor->position.step)
        return 0;
    profiler_phase(c->profiler, "checkpoint");
    name_snapshot(c);
    c->of.listener->save_begins(c->of.listener->ctx, &c->save);
    if (take_snapshot(c, err) || start(c, err))
        return error_wrap(err, "checkpoint at step %lld", (long long)c->of.cursor->position.step);
    c->saved_step = c->of.cursor->position.step;
    if (when == SAVE_BESIDE && c->of.config->checkpoint.async) {
        c->of.listener->save_in_background(c->of.listener->ctx);
        return 0;
    }
    return finish(c, last, err);
}
