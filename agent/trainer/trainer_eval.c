/* Evaluation: the loss over the evaluation data, between two steps. */
#include "agent/trainer/trainer_internal.h"

#include <string.h>

static int run_batches(struct trainer *t, struct error *err)
{
    const struct tape_pass pass = {.row_stride = 1};
    int64_t most = t->config->eval.max_batches;
    for (int64_t b = 0; most == 0 || b < most; b++) {
        struct step_batches fetched;
        if (batch_source_next(t->cursor.test, 1, &fetched, err))
            return -1;
        if (fetched.notice)
            t->listener->notice(t->listener->ctx, fetched.notice);
        if (fetched.batches == 0)
            break;
        struct batch batch = batch_source_batch(t->cursor.test, 0);
        phases_begin(t->phases); /* nobody asks for an evaluation's */
        tape_begin(t->tape, &pass);
        graph_begin(t->graphs[GRAPH_EVALUATION]);
        t->model->forward(t->model, t->tape, &batch, 1, t->totals.sums);
        int result = tape_finish(t->tape, err);
        graph_end(t->graphs[GRAPH_EVALUATION]);
        if (result)
            return -1;
        if (most == 0 || b + 1 < most)
            batch_source_fetch_ahead(t->cursor.test, 1);
        if (step_totals_fetch(&t->totals, err))
            return -1;
    }
    return 0;
}

/* The mean of the ranks' means, as AWS's sample takes it, or the mean over all targets. */
static int mean_loss(struct trainer *t, const double own[3], const double total[3],
                     double *ret_loss, struct error *err)
{
    *ret_loss = total[0] / total[2];
    if (t->config->eval.reduction != EVAL_RANK_MEAN)
        return 0;
    double ranks = own[2] > 0 ? 1 : 0; /* that have targets */
    double means = ranks > 0 ? own[0] / own[2] : 0;
    if (step_totals_sum(&t->totals, &means, err) || step_totals_sum(&t->totals, &ranks, err))
        return -1;
    *ret_loss = means / ranks;
    return 0;
}

int trainer_evaluate(struct trainer *t, struct error *err)
{
    double epoch_sums[3], total[3], own[MODEL_MAX_SUMS];
    enum rank_phase before = activity_enter(t->env.activity, RANK_EVALUATION);
    t->listener->test_begins(t->listener->ctx);
    profiler_phase(t->profiler, "evaluation");
    /* The epoch's sums so far are set aside: evaluation uses the same memory, and gives them
     * back. */
    if (step_totals_reduce(&t->totals, epoch_sums, err))
        return -1;
    step_totals_set(&t->totals, 0, 0, 0);
    if (batch_source_seek(t->cursor.test, 0, 0, "", err) || run_batches(t, err))
        return -1;
    shard_reshard_all(t->shard);
    trainer_log_memory(t);
    memcpy(own, t->totals.host->sums, sizeof own);
    step_totals_fold_labels(own, t->totals.host->sums, own[2]);
    if (step_totals_reduce(&t->totals, total, err))
        return -1;
    struct trainer_score score = {
        .epoch = t->cursor.position.epoch + 1,
        .step = t->cursor.position.step,
        .loss_sum = total[0],
        .correct = total[1],
        .samples = total[2],
    };
    if (mean_loss(t, own, total, &score.loss, err))
        return -1;
    step_totals_set_share(&t->totals, epoch_sums);
    t->listener->test(t->listener->ctx, &score);
    t->evaluated_step = t->cursor.position.step;
    activity_enter(t->env.activity, before);
    return 0;
}
