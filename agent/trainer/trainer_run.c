/* The loop: epochs, and what is done between two steps. */
#include "agent/launch/rank_note.h"
#include "agent/trainer/fatal_step.h"
#include "agent/trainer/trainer_internal.h"

#include <math.h>
#include <string.h>

/* Image models: steps between two looks at whether any rank was asked to stop, each a tiny
 * collective. */
enum { STOP_CHECK_STEPS = 10 };

/* Whether the step that began behind `samples` of the epoch is one to evaluate after. */
static bool is_eval_step(const struct trainer *t, int64_t samples)
{
    const struct agent_config *c = t->config;
    if (!t->cursor.test)
        return false;
    if (c->eval.strategy == EVAL_STEPS)
        return t->cursor.position.step % c->eval.steps == 0;
    int64_t half = t->cursor.train->samples / 2;
    return c->eval.strategy == EVAL_HALF_EPOCH && half > 0 && samples < half &&
           t->cursor.position.epoch_samples >= half &&
           t->cursor.position.epoch_samples < t->cursor.train->samples;
}

static int save(struct trainer *t, enum save_when when, struct error *err)
{
    enum rank_phase before = activity_enter(t->env.activity, RANK_SAVE);
    int result = checkpointer_save(&t->checkpointer, when, err);
    activity_enter(t->env.activity, before);
    return result;
}

static int end_save(struct trainer *t, struct error *err)
{
    enum rank_phase before = activity_enter(t->env.activity, RANK_SAVE);
    int result = checkpointer_end_save(&t->checkpointer, err);
    activity_enter(t->env.activity, before);
    return result;
}

/* Whether any rank wants to stop; and the end of a save that has ended on all of them. */
static int agree_between_steps(struct trainer *t, bool *ret_stop, struct error *err)
{
    double ended = t->totals.host->totals[TOTAL_SAVED];
    *ret_stop = false;
    if (trainer_is_language(t)) /* it came with the step's sums */
        *ret_stop = t->totals.host->totals[TOTAL_STOP] > 0;
    else if (t->cursor.position.step % STOP_CHECK_STEPS != 0)
        return 0;
    else if (step_totals_any(&t->totals, t->listener->stop_requested(t->listener->ctx), ret_stop,
                             err))
        return -1;
    if (!trainer_is_language(t)) {
        ended = checkpointer_save_has_ended(&t->checkpointer) ? 1 : 0;
        if (step_totals_sum(&t->totals, &ended, err))
            return -1;
    }
    return ended >= t->world->size ? end_save(t, err) : 0;
}

/* For the launcher, should the run end there. */
static void note_place(const struct trainer *t, bool is_done)
{
    auto_str struct str where;
    str_init(&where, RANK_NOTE_BYTES - 1);
    if (t->env.note_fd == 0)
        return;
    if (is_done)
        fatal_step_describe_end(t->cursor.position.step, &where);
    else
        fatal_step_describe(&t->cursor, t->cursor.position.step + 1, &where);
    rank_note_write(t->env.note_fd, RANK_NOTE_STEP, str_text(&where));
}

static void begin_step(struct trainer *t)
{
    trainer_profile_begin_step(t);
    memory_saver_step_begins(&t->memory_saver, t->cursor.position.step + 1);
    note_place(t, false);
}

/* What began is no step: the epoch has ended. */
static void leave_step(struct trainer *t)
{
    memory_saver_step_is_none(&t->memory_saver, t->cursor.position.step);
    note_place(t, true);
}

/* All ranks: saves, as this process and what it has in memory may be gone soon. */
static int stop_here(struct trainer *t, struct error *err)
{
    if (memory_saver_save_last(&t->memory_saver, t->cursor.position.step, err))
        return -1;
    if (t->config->checkpoint.save_on_signal && save(t, SAVE_LAST, err))
        return -1;
    error_set(err, ERR_CANCELLED, "stopped at step %lld as asked",
              (long long)t->cursor.position.step);
    err->shared = true;
    return -1;
}

/* samples: of the epoch, before the step. */
static int after_step(struct trainer *t, int64_t samples, struct error *err)
{
    bool stop = false, is_left_out = false;
    memory_saver_step_ends(&t->memory_saver, t->cursor.position.step);
    note_place(t, true);
    if (is_eval_step(t, samples) && trainer_evaluate(t, &is_left_out, err))
        return -1;
    if (memory_saver_save(&t->memory_saver, t->cursor.position.step, err))
        return -1;
    if (agree_between_steps(t, &stop, err))
        return -1;
    stop = stop || is_left_out;
    int64_t every = t->config->checkpoint.save_steps;
    bool is_due = every > 0 && t->cursor.position.step % every == 0;
    t->save_is_due = is_due && data_cursor_epoch_done(&t->cursor) &&
                     !stop; /* it is the epoch's end: run_epochs */
    if (is_due && !t->save_is_due && save(t, SAVE_BESIDE, err))
        return -1;
    return stop ? stop_here(t, err) : 0;
}

/* ---- epochs ---- */

static int run_epoch(struct trainer *t, struct error *err)
{
    struct batch_source *source = t->cursor.train;
    struct memory_use memory;
    device_memory_use(t->device, &memory);
    int64_t begin_bytes = memory.current_total_bytes;
    activity_enter(t->env.activity, RANK_DATA);
    if (data_cursor_begin_epoch(&t->cursor, err))
        return -1;
    t->totals.host->totals[TOTAL_TARGETS] = (double)NAN; /* what was fetched is forgotten */
    int64_t group = t->config->optimizer.gradient_accumulation_steps;
    while (data_cursor_has_next_step(&t->cursor, t->cursor.position.step)) {
        struct step_batches fetched;
        begin_step(t);
        phases_begin(t->phases);
        phases_mark(t->phases, PHASE_DATA);
        if (!source->is_ahead)
            profiler_phase(t->profiler, "data");
        activity_enter(t->env.activity, RANK_DATA);
        if (batch_source_next(source, group, &fetched, err))
            return -1;
        activity_enter(t->env.activity, RANK_STEP);
        if (fetched.notice)
            t->listener->notice(t->listener->ctx, fetched.notice);
        int64_t samples = t->cursor.position.epoch_samples;
        if (data_cursor_fetched(&t->cursor, fetched.batches, err))
            return -1;
        if (t->cursor.epoch_ended)
            leave_step(t);
        else if (trainer_step(t, &fetched, err) || after_step(t, samples, err))
            return -1;
        trainer_profile_end_step(t, !t->cursor.epoch_ended);
    }
    device_memory_use(t->device, &memory);
    struct trainer_score score = {.epoch = t->cursor.position.epoch + 1,
                                  .step = t->cursor.position.step,
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

/* Of a run that goes on from where it ended. */
static void notify_nothing_left(struct trainer *t)
{
    if (t->cursor.position.step > 0 && data_cursor_run_done(&t->cursor))
        t->listener->notice(
            t->listener->ctx,
            arena_printf(t->arena,
                         "nothing is trained: the checkpoint's step %lld is where "
                         "schedule.max_steps or schedule.num_train_epochs ends the run; ask for "
                         "more of them to go on",
                         (long long)t->cursor.position.step));
}

/* Whoever gives a number of steps may not think of the epochs that end the run before. */
static void notify_short(struct trainer *t)
{
    int64_t most = t->config->schedule.max_steps, step = t->cursor.position.step;
    if (most == 0 || step >= most || t->config->logging.style == STYLE_FABRIC)
        return;
    t->listener->notice(
        t->listener->ctx,
        arena_printf(t->arena,
                     "schedule.num_train_epochs=%.6g has ended the run at step %lld, before "
                     "schedule.max_steps=%lld; num_train_epochs=0 lets max_steps alone end it",
                     t->config->schedule.epochs, (long long)step, (long long)most));
}

/* The evaluation that a run which was to stop has left out. */
static int evaluate_late(struct trainer *t, struct error *err)
{
    bool stop = false;
    if (!t->cursor.position.owes_evaluation || !t->cursor.test)
        return 0;
    if (trainer_evaluate(t, &stop, err))
        return -1;
    return stop && !data_cursor_run_done(&t->cursor) ? stop_here(t, err) : 0;
}

static int run_epochs(struct trainer *t, struct error *err)
{
    int64_t strategy = t->config->eval.strategy;
    notify_nothing_left(t);
    if (evaluate_late(t, err))
        return -1;
    while (!data_cursor_run_done(&t->cursor)) {
        if (run_epoch(t, err))
            return -1;
        /* max_steps or a part came first: the position stays within the epoch, and so
         * do its sums. */
        bool over = data_cursor_epoch_done(&t->cursor);
        if (!over && save(t, SAVE_NOW, err))
            return -1;
        bool scores = t->cursor.test && (strategy == EVAL_EPOCH || strategy == EVAL_HALF_EPOCH) &&
                      t->evaluated_step != t->cursor.position.step;
        bool stop = false;
        if (scores && trainer_evaluate(t, &stop, err))
            return -1;
        if (!over)
            break;
        data_cursor_next_epoch(&t->cursor);
        step_totals_set(&t->totals, 0, 0, 0);
        bool saves = t->config->checkpoint.save_steps == 0 || t->save_is_due;
        t->save_is_due = false;
        if (saves && save(t, SAVE_BESIDE, err))
            return -1;
        if (stop && !data_cursor_run_done(&t->cursor))
            return stop_here(t, err);
    }
    notify_short(t);
    if (memory_saver_finish(&t->memory_saver, err) || save(t, SAVE_LAST, err))
        return -1;
    return shard_sync(t->shard, err); /* no step follows that would tell of a failed update */
}

int trainer_run(struct trainer *t, struct error *err)
{
    if (run_epochs(t, err) == 0)
        return 0;
    device_data_error(t->device, err); /* whichever call met it first */
    trainer_explain_memory(t, err);
    return -1;
}
