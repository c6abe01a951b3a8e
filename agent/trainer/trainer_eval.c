/* Evaluation: the loss over the evaluation data, between two steps. */
#include "agent/trainer/trainer_internal.h"
#include "base/mem.h"

#include <string.h>

/* Batches between two looks at whether any rank was asked to stop: a pod has seconds to save. */
enum { STOP_CHECK_BATCHES = 10 };

/* Forward of a batch. An idle rank's is that of the round before, which nobody adds. */
static int run_turn(struct trainer *t, int round, struct batch *batch, struct error *err)
{
    const struct tape_pass pass = {.row_stride = 1};
    bool is_idle = slots_is_idle(t->slots, t->world->rank, round);
    if (!is_idle)
        *batch = batch_source_batch(t->cursor.test, round);
    if (t->fixed_slots)
        step_totals_begin_part(&t->totals);
    phases_begin(t->phases); /* nobody asks for an evaluation's */
    tape_begin(t->tape, &pass);
    graph_begin(t->graphs[GRAPH_EVALUATION]);
    t->model->forward(t->model, t->tape, batch, 1,
                      t->fixed_slots ? t->totals.part : t->totals.sums);
    int result = tape_finish(t->tape, err);
    graph_end(t->graphs[GRAPH_EVALUATION]);
    if (result == 0 && t->fixed_slots && !is_idle)
        step_totals_add_part(&t->totals, false);
    return result;
}

/* Adds to the slot's own sums what came to the rank's since `before`: exactly, with slots. Without,
 * the rank's are all there is. */
static void add_own(const struct trainer *t, const double before[MODEL_MAX_SUMS],
                    double own[MODEL_MAX_SUMS])
{
    const double *now = t->totals.host->sums;
    for (int i = 0; i < MODEL_MAX_SUMS; i++)
        own[i] = t->fixed_slots ? own[i] + (now[i] - before[i]) : now[i];
}

/* own: for each of this rank's slots its sums; zero at first. *ret_stop: any rank was asked to
 * stop, and the rest was left out. */
static int run_batches(struct trainer *t, double (*own)[MODEL_MAX_SUMS], bool *ret_stop,
                       struct error *err)
{
    int64_t most = t->config->eval.max_batches;
    struct batch batch = {0};
    for (int64_t b = 0; most == 0 || b < most; b++) {
        struct step_batches fetched;
        bool asks = b % STOP_CHECK_BATCHES == 0;
        if (asks && step_totals_any(&t->totals, t->listener->stop_requested(t->listener->ctx),
                                    ret_stop, err))
            return -1;
        if (*ret_stop)
            return 0;
        if (batch_source_next(t->cursor.test, 1, &fetched, err))
            return -1;
        if (fetched.notice)
            t->listener->notice(t->listener->ctx, fetched.notice);
        if (fetched.batches == 0)
            break;
        for (int round = 0; round < slots_rounds(t->slots); round++) {
            double before[MODEL_MAX_SUMS];
            memcpy(before, t->totals.host->sums, sizeof before);
            if (run_turn(t, round, &batch, err))
                return -1;
            bool is_last = round + 1 == slots_rounds(t->slots);
            if (is_last && (most == 0 || b + 1 < most))
                batch_source_fetch_ahead(t->cursor.test, 1);
            if (step_totals_fetch(&t->totals, err))
                return -1;
            add_own(t, before, own[round]);
        }
    }
    return 0;
}

/* One exact sum over all slots: of means below 2^13 / slots to the nearest 2^-40. */
static double means_part(double mean)
{
    return step_totals_part(mean * 0x1p20) * 0x1p-20;
}

/* The mean of the ranks' means, as AWS's sample takes it, or the mean over all targets. Slots take
 * the place of ranks. */
static int mean_loss(struct trainer *t, double (*own)[MODEL_MAX_SUMS], const double total[3],
                     double *ret_loss, struct error *err)
{
    *ret_loss = total[0] / total[2];
    if (t->config->eval.reduction != EVAL_RANK_MEAN)
        return 0;
    double ranks = 0, means = 0; /* that have targets */
    for (int i = 0; i < slots_held(t->slots, t->world->rank); i++) {
        step_totals_fold_labels(own[i], own[i], own[i][2]);
        if (own[i][2] <= 0)
            continue;
        double mean = own[i][0] / own[i][2];
        means += t->fixed_slots ? means_part(mean) : mean;
        ranks++;
    }
    if (step_totals_sum(&t->totals, &means, err) || step_totals_sum(&t->totals, &ranks, err))
        return -1;
    *ret_loss = means / ranks;
    return 0;
}

static int report_score(struct trainer *t, double (*own)[MODEL_MAX_SUMS], struct error *err)
{
    double total[3];
    if (step_totals_reduce(&t->totals, total, err))
        return -1;
    const struct data_position *at = &t->cursor.position;
    struct trainer_score score = {
        .epoch = at->epoch + (at->epoch_samples > 0), /* at its end, or that of the one before */
        .step = at->step,
        .loss_sum = total[0],
        .correct = total[1],
        .samples = total[2],
    };
    if (mean_loss(t, own, total, &score.loss, err))
        return -1;
    t->listener->test(t->listener->ctx, &score);
    t->evaluated_step = at->step;
    return 0;
}

static void notify_left_out(const struct trainer *t)
{
    t->listener->notice(t->listener->ctx,
                        arena_printf(t->arena,
                                     "the evaluation after step %lld is left out, as the run is "
                                     "asked to stop; it comes when the run goes on",
                                     (long long)t->cursor.position.step));
}

int trainer_evaluate(struct trainer *t, bool *ret_stop, struct error *err)
{
    double epoch_sums[3];
    auto_free double(*own)[MODEL_MAX_SUMS] = xcalloc((size_t)slots_rounds(t->slots), sizeof *own);
    enum rank_phase before = activity_enter(t->env.activity, RANK_EVALUATION);
    *ret_stop = false;
    t->listener->test_begins(t->listener->ctx);
    profiler_phase(t->profiler, "evaluation");
    /* The epoch's sums so far are set aside: evaluation uses the same memory, and gives them
     * back. */
    if (step_totals_reduce(&t->totals, epoch_sums, err))
        return -1;
    step_totals_set(&t->totals, 0, 0, 0);
    if (batch_source_seek(t->cursor.test, 0, 0, "", err) || run_batches(t, own, ret_stop, err))
        return -1;
    shard_reshard_all(t->shard);
    trainer_log_memory(t);
    trainer_log_tuning(t);
    if (*ret_stop)
        notify_left_out(t);
    else if (report_score(t, own, err))
        return -1;
    t->cursor.position.owes_evaluation = *ret_stop;
    step_totals_set_share(&t->totals, epoch_sums);
    activity_enter(t->env.activity, before);
    return 0;
}
