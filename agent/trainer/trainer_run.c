/* The loop: epochs, and what is done between two steps. */
#include "agent/trainer/trainer_parts.h"

#include <math.h>
#include <string.h>

/* Image models: steps between two looks at whether any rank was asked to stop, each a tiny
 * collective. */
enum { STOP_CHECK_STEPS = 10 };

/* Optimizer steps of one epoch. */
static int64_t steps_of_one(const struct trainer *t)
{
    int64_t group = t->config->optimizer.gradient_accumulation_steps;
    bool drops = t->config->optimizer.drop_incomplete;
    return (t->train->batches + (drops ? 0 : group - 1)) / group;
}

/* A part of an epoch rounds up, as Transformers' Trainer does. */
int64_t trainer_epoch_steps(const struct trainer *t)
{
    if (t->train->batches < 0)
        return 0;
    return (int64_t)ceil((double)steps_of_one(t) * t->config->schedule.epochs);
}

int64_t trainer_steps(const struct trainer *t)
{
    int64_t most = t->config->schedule.max_steps, steps = trainer_epoch_steps(t);
    return steps == 0 || (most > 0 && most < steps) ? most : steps;
}

int trainer_check_epoch(const struct trainer *t, int64_t batches, struct error *err)
{
    const struct agent_config *c = t->config;
    int64_t group = c->optimizer.gradient_accumulation_steps;
    if (batches == 0)
        return error_set(err, ERR_CONFIG,
                         "data.drop_last: %s has too few samples for one batch of %lld on each "
                         "rank: nothing would be trained",
                         t->train->what, (long long)t->train->batch_rows);
    if (batches < 0 || batches >= group || !c->optimizer.drop_incomplete)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "optimizer.gradient_accumulation_steps: %lld micro-batches make a step, but "
                     "an epoch has only %lld on each rank: nothing would be trained; take fewer, "
                     "or optimizer.drop_incomplete_accumulation=false",
                     (long long)group, (long long)batches);
}

/* ---- between steps ---- */

/* Whether this is a last epoch that is to be done in part only, and that part is done: in samples,
 * which mean the same after a resume with other batches. */
static bool part_is_over(const struct trainer *t)
{
    double epochs = t->config->schedule.epochs;
    if (epochs == floor(epochs) || t->position.epoch < (int64_t)epochs)
        return false;
    int64_t steps = trainer_epoch_steps(t) - (int64_t)epochs * steps_of_one(t);
    int64_t step_samples =
        t->config->optimizer.gradient_accumulation_steps * t->train->batch_rows * t->world->size;
    return t->position.epoch_samples >= steps * step_samples;
}

/* Once so many steps are done. */
static bool steps_are_over(const struct trainer *t, int64_t steps)
{
    int64_t most = t->config->schedule.max_steps;
    return (most > 0 && steps >= most) || part_is_over(t);
}

static bool epoch_is_over(const struct trainer *t)
{
    return t->epoch_ended ||
           (t->train->samples >= 0 && t->position.epoch_samples >= t->train->samples);
}

bool trainer_epoch_goes_on(const struct trainer *t, int64_t steps)
{
    return !epoch_is_over(t) && !steps_are_over(t, steps);
}

/* Whether the step that began behind `samples` of the epoch is one to evaluate after. */
static bool is_eval_step(const struct trainer *t, int64_t samples)
{
    const struct agent_config *c = t->config;
    if (!t->test)
        return false;
    if (c->eval.strategy == EVAL_STEPS)
        return t->position.step % c->eval.steps == 0;
    int64_t half = t->train->samples / 2;
    return c->eval.strategy == EVAL_HALF_EPOCH && half > 0 && samples < half &&
           t->position.epoch_samples >= half && t->position.epoch_samples < t->train->samples;
}

/* Whether any rank wants to stop; and the end of a save that has ended on all of them. */
static int agree_between_steps(struct trainer *t, bool *ret_stop, struct error *err)
{
    double ended = t->totals.host->totals[TOTAL_SAVED];
    *ret_stop = false;
    if (trainer_is_language(t)) /* it came with the step's sums */
        *ret_stop = t->totals.host->totals[TOTAL_STOP] > 0;
    else if (t->position.step % STOP_CHECK_STEPS != 0)
        return 0;
    else if (step_totals_any(&t->totals, t->listener->stop_asked(t->listener->ctx), ret_stop, err))
        return -1;
    if (!trainer_is_language(t)) {
        ended = trainer_save_has_ended(t) ? 1 : 0;
        if (step_totals_sum(&t->totals, &ended, err))
            return -1;
    }
    return ended >= t->world->size ? trainer_end_save(t, err) : 0;
}

/* samples: of the epoch, before the step. */
static int after_step(struct trainer *t, int64_t samples, struct error *err)
{
    if (is_eval_step(t, samples) && trainer_evaluate(t, err))
        return -1;
    bool stop = false;
    if (agree_between_steps(t, &stop, err))
        return -1;
    int64_t every = t->config->checkpoint.save_steps;
    bool is_due = every > 0 && t->position.step % every == 0;
    t->save_is_due = is_due && epoch_is_over(t) && !stop; /* it is the epoch's end: run_epochs */
    if (is_due && !t->save_is_due && trainer_save(t, SAVE_BESIDE, err))
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

static int run_epoch(struct trainer *t, struct error *err)
{
    struct source *source = t->train;
    struct memory_use memory;
    device_memory_use(t->device, &memory);
    int64_t begin_bytes = memory.current_total_bytes;
    if (source_seek(source, t->position.epoch, t->position.epoch_samples, t->data_state, err))
        return -1;
    t->data_state = "";
    t->epoch_ended = false;
    t->totals.host->totals[TOTAL_TARGETS] = (double)NAN; /* what was fetched is forgotten */
    const struct agent_config *c = t->config;
    int64_t group = c->optimizer.gradient_accumulation_steps;
    while (trainer_epoch_goes_on(t, t->position.step)) {
        struct source_fetched fetched;
        trainer_profile_step_begins(t);
        phases_begin(t->phases);
        phases_mark(t->phases, PHASE_DATA);
        if (!source->is_ahead)
            profiler_phase(t->profiler, "data");
        if (source_next(source, group, &fetched, err))
            return -1;
        if (fetched.notice)
            t->listener->notice(t->listener->ctx, fetched.notice);
        t->epoch_ended =
            fetched.batches == 0 || (fetched.batches < group && c->optimizer.drop_incomplete);
        int64_t samples = t->position.epoch_samples;
        if (t->epoch_ended && samples == 0 && trainer_check_epoch(t, fetched.batches, err))
            return -1;
        if (!t->epoch_ended && (trainer_step(t, &fetched, err) || after_step(t, samples, err)))
            return -1;
        trainer_profile_step_ends(t, !t->epoch_ended);
    }
    device_memory_use(t->device, &memory);
    struct trainer_score score = {.epoch = t->position.epoch + 1,
                                  .step = t->position.step,
                                  .memory_begin_bytes = begin_bytes,
                                  .memory_end_bytes = memory.current_total_bytes,
                                  .memory_peak_bytes = memory.peak_total_bytes};
    double sums[3];
    if (step_totals_reduce(&t->totals, sums, err))
        return -1;
    score.loss_sum = sums[0], score.correct = sums[1], score.samples = sums[2];
    score.loss = sums[0] / sums[2];
    t->listener->epoch(t->listener->ctx, &score);
    return 0;
}

static bool run_is_over(const struct trainer *t)
{
    int64_t epochs = trainer_epochs(t->config);
    return (epochs > 0 && t->position.epoch >= epochs) || steps_are_over(t, t->position.step);
}

/* Of a run that goes on from where it ended. */
static void tell_finished(struct trainer *t)
{
    if (t->position.step > 0 && run_is_over(t))
        t->listener->notice(
            t->listener->ctx,
            arena_printf(t->arena,
                         "nothing is trained: the checkpoint's step %lld is where "
                         "schedule.max_steps or schedule.num_train_epochs ends the run; ask for "
                         "more of them to go on",
                         (long long)t->position.step));
}

static int run_epochs(struct trainer *t, struct error *err)
{
    int64_t strategy = t->config->eval.strategy;
    tell_finished(t);
    while (!run_is_over(t)) {
        if (run_epoch(t, err))
            return -1;
        /* max_steps or a part came first: the position stays within the epoch, and so
         * do its sums. */
        bool over = epoch_is_over(t);
        if (!over && trainer_save(t, SAVE_NOW, err))
            return -1;
        bool scores = t->test && (strategy == EVAL_EPOCH || strategy == EVAL_HALF_EPOCH) &&
                      t->evaluated_step != t->position.step;
        if (scores && trainer_evaluate(t, err))
            return -1;
        if (!over)
            break;
        t->position.epoch++;
        t->position.epoch_samples = 0;
        step_totals_set(&t->totals, 0, 0, 0);
        bool saves = t->config->checkpoint.save_steps == 0 || t->save_is_due;
        t->save_is_due = false;
        if (saves && trainer_save(t, SAVE_BESIDE, err))
            return -1;
    }
    return trainer_save(t, SAVE_LAST, err);
}

int trainer_run(struct trainer *t, struct error *err)
{
    if (run_epochs(t, err) == 0)
        return 0;
    trainer_explain_memory(t, err);
    return -1;
}
