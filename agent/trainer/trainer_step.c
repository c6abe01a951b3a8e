/* One optimizer step: its whole work is queued and waited for once, at its end, but for an update
 * beside the next step. While the device works on it, the host fetches what the next one needs. */
#include "agent/trainer/trainer_internal.h"

#include <math.h>
#include <string.h>

static struct tape_pass train_pass(const struct trainer *t, const struct slots_turn *turn)
{
    const struct agent_config *c = t->config;
    bool same = c->runtime.same_seed; /* row r has the same dropout on every rank */
    return (struct tape_pass){
        .training = true,
        .seed = (uint64_t)c->runtime.seed,
        .step = (uint64_t)(t->cursor.position.micro_batches + turn->micro_batch),
        .first_row = same ? 0 : (uint64_t)slots_of(t->slots, t->world->rank, turn->round),
        .row_stride = same ? 1 : (uint64_t)t->slots.count,
        .nondeterministic = trainer_may_differ(t),
    };
}

/* What one target's loss counts for, and one label's beside it. */
struct scales {
    float targets, labels;
};

/* Queues the turn's micro-batch, or the last one again where this rank is idle: the others need it
 * in their collectives, and nobody adds what it gives. */
static struct batch take_batch(struct trainer *t, const struct slots_turn *turn, int64_t batches)
{
    if (!slots_is_idle(t->slots, t->world->rank, turn->round))
        t->batch = batch_source_batch(t->cursor.train, turn->round * batches + turn->micro_batch);
    return t->batch;
}

/* Returns where the turn's sums go to. */
static double *begin_turn(struct trainer *t, const struct slots_turn *turn)
{
    if (!t->fixed_slots) {
        shard_begin(t->shard, turn->reduces);
        return t->totals.sums;
    }
    shard_begin_turn(t->shard, turn);
    step_totals_begin_part(&t->totals);
    return t->totals.part;
}

static int run_micro_batch(struct trainer *t, const struct slots_turn *turn, int64_t batches,
                           const struct scales *scales, struct error *err)
{
    phases_mark(t->phases, PHASE_FORWARD);
    profiler_phase(t->profiler, "forward");
    struct batch batch = take_batch(t, turn, batches);
    batch.label_scale = scales->labels;
    struct tape_pass pass = train_pass(t, turn);
    double *sums = begin_turn(t, turn);
    tape_begin(t->tape, &pass);
    graph_begin(t->graphs[GRAPH_TRAINING]);
    t->model->forward(t->model, t->tape, &batch, scales->targets, sums);
    phases_mark(t->phases, PHASE_BACKWARD);
    profiler_phase(t->profiler, "backward");
    int result = tape_backward(t->tape, err);
    graph_end(t->graphs[GRAPH_TRAINING]);
    if (result)
        return -1;
    if (t->fixed_slots && !slots_is_idle(t->slots, t->world->rank, turn->round))
        step_totals_add_part(&t->totals, turn->round == 0);
    if (turn->round == 0)
        t->cursor.position.epoch_samples += batch.rows * t->slots.count;
    return 0;
}

/* Of each slot as many micro-batches as were fetched. */
static int run_micro_batches(struct trainer *t, int64_t batches, const struct scales *scales,
                             struct error *err)
{
    const struct shard_config config = trainer_shard_config(t->config, t->strategy, t->group_size);
    /* Without slots the engine knows itself what it reduces, from which is the last. */
    bool each = t->fixed_slots && shard_reduces_each(config.accumulate_sharded, config.strategy);
    int64_t turns = slots_rounds(t->slots) * batches;
    for (int64_t n = 0; n < turns; n++) {
        const struct slots_turn turn = slots_turn(t->slots, (int)batches, each, (int)n);
        if (run_micro_batch(t, &turn, batches, scales, err))
            return -1;
    }
    t->cursor.position.micro_batches += batches;
    return 0;
}

/* So that the step's gradient, the mean over the slots, is that of the mean loss over what all
 * ranks have, `mine` of which is this rank's. What all have came with the sums of the step before,
 * as this total, if all had fetched by then; else the ranks are asked now. */
static int scale_of(struct trainer *t, int64_t mine, bool same, int total, float *ret_scale,
                    struct error *err)
{
    double count = (double)mine / slots_held(t->slots, t->world->rank);
    *ret_scale = 1;
    if (t->config->model.loss_reduction == LOSS_SUM)
        return 0;
    if (!same) {
        count = (double)mine;
        if (!isnan(t->totals.host->totals[TOTAL_TARGETS]))
            count = t->totals.host->totals[total];
        else if (step_totals_sum(&t->totals, &count, err))
            return -1;
        count /= t->slots.count;
    }
    *ret_scale = count > 0 ? (float)(1 / count) : 0;
    return 0;
}

static int find_scales(struct trainer *t, const struct step_batches *fetched,
                       struct scales *ret_scales, struct error *err)
{
    ret_scales->labels = 0;
    if (t->model->task == MODEL_PRETRAINING &&
        scale_of(t, fetched->labels, fetched->same, TOTAL_LABELS, &ret_scales->labels, err))
        return -1;
    return scale_of(t, fetched->targets, fetched->same, TOTAL_TARGETS, &ret_scales->targets, err);
}

static bool measures_norm(const struct trainer *t)
{
    return trainer_is_language(t) || t->config->optimizer.grad_clip > 0 ||
           t->config->runtime.nan_policy != NAN_WARN;
}

/* The norm is that of all ranks' gradients: they find the same. */
static int diverged(const struct trainer *t, struct error *err)
{
    error_set(err, ERR_DIVERGED,
              "step %lld: the gradient's norm is no number (runtime.nan_policy=abort): try a "
              "smaller learning rate, or clip gradients",
              (long long)t->cursor.position.step + 1);
    err->shared = true;
    return -1;
}

/* The update, unless the policy for gradients that are no numbers forbids it. */
static int update(struct trainer *t, struct error *err)
{
    if (measures_norm(t))
        optim_measure(t->optim);
    if (t->config->runtime.nan_policy != NAN_WARN) {
        if (shard_sync(t->shard, err))
            return -1;
        double norm = optim_norm(t->optim);
        if (!isfinite(norm) && t->config->runtime.nan_policy == NAN_ABORT)
            return diverged(t, err);
        if (!isfinite(norm)) {
            t->skipped_steps++;
            return 0;
        }
    }
    struct stream *update = shard_update_stream(t->shard);
    stream_range_begin(update, &(struct stream_range){.what = "optimizer"});
    optim_step(t->optim, (float)t->lr);
    stream_range_end(update);
    return 0;
}

/* The sums of all ranks beside this rank's, what they have to agree on, and what they have for the
 * next step, for language models: queued. */
static void queue_totals(struct trainer *t)
{
    const struct step_batches *next = batch_source_ahead(t->cursor.train);
    const struct step_votes votes = {
        .stop = t->listener->stop_requested(t->listener->ctx),
        .saved = checkpointer_save_has_ended(&t->checkpointer),
        .targets = next ? (double)next->targets : (double)NAN,
        .labels = next ? (double)next->labels : 0,
    };
    step_totals_queue(&t->totals, &votes, t->model->task == MODEL_PRETRAINING);
}

/* The mean loss of the step: over all ranks' targets (*ret_targets), or, of images, over this
 * rank's. With reduction slots these are its first slot's: the rank of the same number would have
 * them in a run of as many ranks as slots. */
static double step_loss(const struct trainer *t, const double *sums_before,
                        const double *totals_before, double *ret_targets)
{
    static const double nothing[MODEL_MAX_SUMS];
    const double *after = t->totals.host->sums, *before = sums_before;
    if (trainer_is_language(t))
        after = t->totals.host->totals, before = totals_before;
    else if (t->fixed_slots)
        after = t->totals.host->first, before = nothing;
    *ret_targets = after[2] - before[2];
    return (after[0] - before[0]) / *ret_targets;
}

/* Every micro-batch but an epoch's last has as many samples. */
static void count_micro_batches(const struct trainer *t, struct run_numbers *numbers)
{
    int64_t samples = t->config->data.train_batch_size * t->slots.count;
    numbers->micro_batches = (numbers->samples + samples - 1) / samples;
    numbers->micro_batch =
        (t->cursor.position.epoch_samples + samples - 1) / samples - numbers->micro_batches;
}

static void report_step(struct trainer *t, const struct step_batches *fetched,
                        const double *sums_before, const double *totals_before)
{
    double targets, loss = step_loss(t, sums_before, totals_before, &targets);
    const struct schedule_position next = {t->cursor.position.epoch, t->cursor.position.step};
    struct run_numbers numbers = {
        .step = t->cursor.position.step,
        .steps = data_cursor_steps(&t->cursor),
        .epochs = trainer_epochs(t->config),
        .epoch = data_cursor_epochs(&t->cursor),
        .epochs_done = t->cursor.position.epoch,
        .loss = loss,
        .is_empty = targets == 0,
        .grad_norm = measures_norm(t) ? optim_norm(t->optim) : (double)NAN,
        .lr = t->lr,
        .next_lr = schedule_lr(&t->schedule, next),
        .samples = fetched->rows * t->slots.count,
        .tokens = fetched->tokens * t->slots.count, /* the others have about as many */
        .traffic = t->world->stats,
    };
    bool finite =
        (isfinite(loss) || numbers.is_empty) && (isfinite(numbers.grad_norm) || !measures_norm(t));
    t->nonfinite_steps += !finite;
    numbers.nonfinite_steps = t->nonfinite_steps;
    numbers.skipped_steps = t->skipped_steps;
    trainer_memory_use(t, &numbers.memory);
    shard_add_traffic(t->shard, &numbers.traffic);
    count_micro_batches(t, &numbers);
    phases_take(t->phases, numbers.phase_s);
    activity_step(t->env.activity, numbers.step,
                  numbers.phase_s[PHASE_FORWARD] + numbers.phase_s[PHASE_BACKWARD]);
    t->listener->step(t->listener->ctx, &numbers);
    trainer_log_memory(t);
    trainer_log_tuning(t);
}

/* A skipped step whose loss is no number counts in none of the epoch's sums, of which each later
 * step's loss is the difference. The norm is that of all ranks: they skip the same steps. */
static void leave_out_skipped(struct trainer *t, const double *sums_before,
                              const double *totals_before)
{
    struct step_sums before;
    double loss = trainer_is_language(t) ? t->totals.host->totals[0] : t->totals.host->sums[0];
    if (isfinite(loss))
        return;
    memcpy(before.sums, sums_before, sizeof before.sums);
    memcpy(before.totals, totals_before, sizeof before.totals);
    step_totals_restore(&t->totals, &before);
}

/* The device has all of this step's work. Where it comes to the end of that before the next step's
 * data is there, it waits for data. A rank that was asked to stop has its time for saving. */
static void fetch_ahead(struct trainer *t)
{
    if (!data_cursor_has_next_step(&t->cursor, t->cursor.position.step + 1) ||
        t->listener->stop_requested(t->listener->ctx))
        return;
    profiler_phase(t->profiler, "data");
    activity_enter(t->env.activity, RANK_DATA);
    batch_source_fetch_ahead(t->cursor.train, t->config->optimizer.gradient_accumulation_steps);
    activity_enter(t->env.activity, RANK_STEP);
}

int trainer_step(struct trainer *t, const struct step_batches *fetched, struct error *err)
{
    double sums[MODEL_MAX_SUMS], totals[TOTALS];
    const int64_t skipped_before = t->skipped_steps;
    memcpy(sums, t->totals.host->sums, sizeof sums);
    memcpy(totals, t->totals.host->totals, sizeof totals);
    struct scales scales;
    stream_range_begin(t->compute, &(struct stream_range){.what = "ProfilerStep",
                                                          .number = t->cursor.position.step + 1});
    if (find_scales(t, fetched, &scales, err))
        return -1;
    if (t->fixed_slots)
        step_totals_begin_step(&t->totals);
    if (run_micro_batches(t, fetched->batches, &scales, err))
        return -1;
    shard_finish(t->shard);
    phases_mark(t->phases, PHASE_OPTIMIZER);
    profiler_phase(t->profiler, "optimizer");
    const struct schedule_position at = {.epoch = t->cursor.position.epoch,
                                         .step = t->cursor.position.step};
    t->lr = schedule_lr(&t->schedule, at);
    memory_saver_before_update(&t->memory_saver);
    graph_begin(t->graphs[GRAPH_UPDATE]);
    int result = update(t, err);
    graph_end(t->graphs[GRAPH_UPDATE]);
    if (result)
        return -1;
    phases_mark(t->phases, PHASE_DATA);
    fetch_ahead(t);
    profiler_phase(t->profiler, "wait");
    if (trainer_is_language(t)) /* waits for the data of the other ranks, too */
        queue_totals(t);
    phases_mark(t->phases, PHASE_DATA);
    stream_range_end(t->compute);
    if (step_totals_fetch(&t->totals, err))
        return -1;
    profiler_phase(t->profiler, NULL);
    if (t->model->task == MODEL_PRETRAINING)
        step_totals_fold_step(&t->totals, totals);
    t->cursor.position.step++;
    report_step(t, fetched, sums, totals);
    if (t->skipped_steps > skipped_before)
        leave_out_skipped(t, sums, totals);
    return 0;
}
