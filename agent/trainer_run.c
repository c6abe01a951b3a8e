/* The loop. Each step queues its whole work and waits for it once, at its end. */
#include "agent/trainer_parts.h"

#include <string.h>

/* Steps between two looks at whether any rank was asked to stop: one tiny collective each. */
enum { STOP_CHECK_STEPS = 10 };

void trainer_set_sums(struct trainer *t, double loss, double correct, double samples)
{
    struct error ignored; /* a failed stream stays failed: the next trainer_sync tells */
    (void)stream_sync(t->compute, &ignored); /* an earlier copy may still read host_sums */
    t->host_sums[0] = loss;
    t->host_sums[1] = correct;
    t->host_sums[2] = samples;
    stream_copy(t->compute, t->sums, t->host_sums, sizeof t->host_sums);
}

void trainer_set_share(struct trainer *t, const double sums[3])
{
    bool mine = t->place.world->rank == 0;
    trainer_set_sums(t, mine ? sums[0] : 0, mine ? sums[1] : 0, mine ? sums[2] : 0);
}

int trainer_sync(struct trainer *t, struct error *err)
{
    stream_copy(t->compute, t->host_sums, t->sums, sizeof t->host_sums);
    return shard_sync(t->shard, err);
}

int trainer_total_sums(struct trainer *t, double ret_sums[3], struct error *err)
{
    struct comm *world = t->place.world;
    world->fn->all_reduce_f64(world, t->compute, t->sums, 3);
    if (trainer_sync(t, err))
        return -1;
    memcpy(ret_sums, t->host_sums, sizeof t->host_sums);
    trainer_set_share(t, ret_sums);
    return 0;
}

/* ---- one optimizer step ---- */

static struct tape_pass pass_of(const struct trainer *t, bool training)
{
    return (struct tape_pass){
        .training = training,
        .seed = (uint64_t)t->config->runtime.seed,
        .step = (uint64_t)t->position.micro_batches,
        .first_row = (uint64_t)t->place.world->rank,
        .row_stride = (uint64_t)t->place.world->size,
    };
}

static int run_micro_batch(struct trainer *t, int64_t i, bool last, float loss_scale,
                           struct error *err)
{
    struct batch batch = t->train->fn->batch(t->train, i);
    struct tape_pass pass = pass_of(t, true);
    shard_begin(t->shard, last);
    tape_begin(t->tape, &pass);
    t->model->forward(t->model, t->tape, &batch, loss_scale, t->sums);
    if (tape_backward(t->tape, err))
        return -1;
    t->position.micro_batches++;
    t->position.epoch_samples += batch.rows * t->place.world->size;
    return last ? 0 : trainer_sync(t, err);
}

/* What one target's loss counts for, so that the step's gradient, the mean over the ranks, is that
 * of the mean loss over the targets of all ranks. */
static int scale_of(struct trainer *t, const struct source_fetched *fetched, float *ret_scale,
                    struct error *err)
{
    double targets = (double)fetched->targets;
    *ret_scale = 1;
    if (t->config->model.loss_reduction == LOSS_SUM)
        return 0;
    if (!fetched->same) {
        if (trainer_sum(t, &targets, err))
            return -1;
        targets /= t->place.world->size;
    }
    *ret_scale = targets > 0 ? (float)(1 / targets) : 0;
    return 0;
}

int64_t trainer_steps(const struct trainer *t)
{
    int64_t group = t->config->optimizer.gradient_accumulation_steps;
    int64_t most = t->config->schedule.max_steps;
    if (t->train->batches < 0)
        return most;
    int64_t steps = (t->train->batches + group - 1) / group * t->config->schedule.epochs;
    return most > 0 && most < steps ? most : steps;
}

static void tell_step(struct trainer *t, const struct source_fetched *fetched,
                      const double before[2])
{
    const struct trainer_step step = {
        .position = t->position,
        .samples = fetched->rows * t->place.world->size,
        .loss = (t->host_sums[0] - before[0]) / (t->host_sums[2] - before[1]),
        .lr = t->lr,
        .epochs = t->config->schedule.epochs,
        .steps = trainer_steps(t),
    };
    t->listener->step(t->listener->ctx, &step);
}

/* The fetched micro-batches, then the optimizer. */
static int run_step(struct trainer *t, const struct source_fetched *fetched, struct error *err)
{
    double before[2] = {t->host_sums[0], t->host_sums[2]};
    float scale;
    if (scale_of(t, fetched, &scale, err))
        return -1;
    for (int64_t i = 0; i < fetched->batches; i++)
        if (run_micro_batch(t, i, i + 1 == fetched->batches, scale, err))
            return -1;
    shard_finish(t->shard);
    const struct schedule_position at = {.epoch = t->position.epoch, .step = t->position.step};
    t->lr = schedule_lr(&t->schedule, at);
    optim_step(t->optim, (float)t->lr);
    if (trainer_sync(t, err))
        return -1;
    t->position.step++;
    tell_step(t, fetched, before);
    return 0;
}

/* ---- between steps ---- */

static bool steps_are_over(const struct trainer *t)
{
    int64_t most = t->config->schedule.max_steps;
    return most > 0 && t->position.step >= most;
}

int trainer_sum(struct trainer *t, double *number, struct error *err)
{
    struct comm *world = t->place.world;
    stream_copy(t->compute, t->flag, number, sizeof *number);
    world->fn->all_reduce_f64(world, t->compute, t->flag, 1);
    stream_copy(t->compute, number, t->flag, sizeof *number);
    return stream_sync(t->compute, err);
}

int trainer_any(struct trainer *t, bool mine, bool *ret_any, struct error *err)
{
    double count = mine ? 1 : 0;
    if (trainer_sum(t, &count, err))
        return -1;
    *ret_any = count > 0;
    return 0;
}

static int after_step(struct trainer *t, struct error *err)
{
    int64_t every = t->config->checkpoint.save_steps;
    if (every > 0 && t->position.step % every == 0 && trainer_save(t, SAVE_BESIDE, err))
        return -1;
    if (trainer_poll_save(t, err))
        return -1;
    if (t->position.step % STOP_CHECK_STEPS != 0)
        return 0;
    bool stop = false;
    if (trainer_any(t, t->listener->stop_asked(t->listener->ctx), &stop, err))
        return -1;
    if (!stop)
        return 0;
    if (t->config->checkpoint.save_on_signal && trainer_save(t, SAVE_LAST, err))
        return -1;
    error_set(err, ERR_CANCELLED, "stopped at step %lld as asked", (long long)t->position.step);
    err->shared = true;
    return -1;
}

/* ---- epochs ---- */

static bool epoch_is_over(const struct trainer *t)
{
    return t->epoch_ended ||
           (t->train->samples >= 0 && t->position.epoch_samples >= t->train->samples);
}

static int run_epoch(struct trainer *t, struct error *err)
{
    struct source *source = t->train;
    if (source->fn->seek(source, t->position.epoch, t->position.epoch_samples, t->data_state, err))
        return -1;
    t->data_state = "";
    t->epoch_ended = false;
    int64_t group = t->config->optimizer.gradient_accumulation_steps;
    while (!epoch_is_over(t) && !steps_are_over(t)) {
        struct source_fetched fetched;
        if (source->fn->fetch(source, group, &fetched, err))
            return -1;
        t->epoch_ended = fetched.batches == 0;
        if (!t->epoch_ended && (run_step(t, &fetched, err) || after_step(t, err)))
            return -1;
    }
    struct trainer_score score = {.epoch = t->position.epoch + 1};
    double sums[3];
    if (trainer_total_sums(t, sums, err))
        return -1;
    score.loss_sum = sums[0], score.correct = sums[1], score.samples = sums[2];
    t->listener->epoch(t->listener->ctx, &score);
    return 0;
}

static int evaluate(struct trainer *t, struct error *err)
{
    trainer_set_sums(t, 0, 0, 0);
    if (t->test->fn->seek(t->test, 0, 0, "", err))
        return -1;
    struct tape_pass pass = pass_of(t, false);
    for (;;) {
        struct source_fetched fetched;
        if (t->test->fn->fetch(t->test, 1, &fetched, err))
            return -1;
        if (fetched.batches == 0)
            break;
        struct batch batch = t->test->fn->batch(t->test, 0);
        tape_begin(t->tape, &pass);
        t->model->forward(t->model, t->tape, &batch, 1, t->sums);
        if (tape_finish(t->tape, err) || trainer_sync(t, err))
            return -1;
    }
    shard_reset(t->shard);
    double sums[3];
    if (trainer_total_sums(t, sums, err))
        return -1;
    const struct trainer_score score = {
        .epoch = t->position.epoch + 1,
        .loss_sum = sums[0],
        .correct = sums[1],
        .samples = sums[2],
    };
    t->listener->test(t->listener->ctx, &score);
    return 0;
}

int trainer_run(struct trainer *t, struct error *err)
{
    while (t->position.epoch < t->config->schedule.epochs && !steps_are_over(t)) {
        if (run_epoch(t, err))
            return -1;
        /* max_steps came first: the position stays within the epoch, and so do its sums. */
        bool over = epoch_is_over(t);
        if (!over && trainer_save(t, SAVE_NOW, err))
            return -1;
        if (t->test && evaluate(t, err))
            return -1;
        if (!over)
            break;
        t->position.epoch++;
        t->position.epoch_samples = 0;
        trainer_set_sums(t, 0, 0, 0);
        if (t->config->checkpoint.save_steps == 0 && trainer_save(t, SAVE_BESIDE, err))
            return -1;
    }
    return trainer_save(t, SAVE_LAST, err);
}
