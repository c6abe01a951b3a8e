#include "operator/reconcile/policy_training.h"

#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/names.h"
#include "operator/reconcile/context.h"
#include "operator/reconcile/policy_avoid_node.h"

#include <inttypes.h>
#include <string.h>

/* Events of checkpoints: one an hour at most. The hours are the clock's, so that another operator
 * goes on with them. */
#define CHECKPOINT_EVENT_MS (60 * 60 * 1000)

static const char *progress_text(struct reconcile_context *ctx, const struct training *training)
{
    char text[TRAINING_TEXT_BYTES];
    training_progress_text(training, text);
    return context_text(ctx, "step %s", *text ? text : "0");
}

static const char *ranks_text(struct reconcile_context *ctx, const struct training *training)
{
    return context_text(ctx, "%" PRId64 " rank%s", training->world_size,
                        training->world_size == 1 ? "" : "s");
}

static void tell_first_step(struct reconcile_context *ctx, const struct training *before,
                            const struct training *after)
{
    if ((before->known && before->step > 0) || after->step <= 0)
        return;
    context_event(ctx, EVENT_NORMAL, REASON_TRAINING_STARTED,
                  context_text(ctx, "PyTorchJob %s trains on %s: %s.", ctx->job->name,
                               ranks_text(ctx, after), progress_text(ctx, after)));
}

static void tell_checkpoint(struct reconcile_context *ctx, const struct training *before,
                            const struct training *after)
{
    int64_t told_ms = before->known ? before->checkpoint_ms : 0;
    if (after->checkpoint_step < 0 ||
        after->checkpoint_ms / CHECKPOINT_EVENT_MS <= told_ms / CHECKPOINT_EVENT_MS)
        return;
    context_event(
        ctx, EVENT_NORMAL, REASON_CHECKPOINT_SAVED,
        context_text(ctx, "A checkpoint is kept of step %" PRId64 " (told once an hour at most).",
                     after->checkpoint_step));
}

/* Ranks that started again, of this pod or another, or in another number. Where the kubelet starts
 * a container again, another process tells, of as many restarts as before. */
static void tell_recovery(struct reconcile_context *ctx, const struct training *before,
                          const struct training *after)
{
    if (!before->known || before->world_size < 1)
        return;
    bool counts = after->restarts > before->restarts || after->world_size != before->world_size;
    bool is_another = before->process_ms && goodput_is_another(before, after);
    if (!counts && !is_another)
        return;
    const char *was = after->world_size == before->world_size
                          ? ""
                          : context_text(ctx, " instead of %" PRId64, before->world_size);
    const char *number =
        counts ? context_text(ctx, ", restart %" PRId64, after->restarts > 0 ? after->restarts : 0)
               : "";
    context_event(ctx, EVENT_NORMAL, REASON_TRAINING_RECOVERED,
                  context_text(ctx, "PyTorchJob %s trains again, on %s%s: %s%s.", ctx->job->name,
                               ranks_text(ctx, after), was, progress_text(ctx, after), number));
}

/* Where a master is, its pod is node 0 and the workers follow; others take numbers as they come,
 * and those of an elastic run are of its last round. */
static const char *pod_text(struct reconcile_context *ctx, int64_t node)
{
    if (!ctx->job->replicas[REPLICA_MASTER].present || ctx->job->elastic.present || node < 0 ||
        node > INT32_MAX)
        return "";
    const char *name = node == 0
                           ? names_child(ctx->arena, ctx->job, REPLICA_MASTER, 0)
                           : names_child(ctx->arena, ctx->job, REPLICA_WORKER, (int32_t)node - 1);
    return context_text(ctx, " in pod %s", name);
}

/* Of an agent that tells of a hang only while it lasts. */
static void tell_hang_of_now(struct reconcile_context *ctx, const struct training *before,
                             const struct training *after)
{
    int64_t told = before->known ? before->hung_rank : -1;
    if (after->hung_rank < 0 || after->hung_rank == told)
        return;
    context_event(
        ctx, EVENT_WARNING, REASON_RANK_HUNG,
        context_text(ctx,
                     "Rank %" PRId64 "%s hangs at %s, and others wait for it. The log of rank 0 "
                     "has its phase and collective, its own log its call stacks.",
                     after->hung_rank, pod_text(ctx, after->hung_node), progress_text(ctx, after)));
}

/* A name that an agent tells counts where the job has such a pod. */
static const char *told_pod_text(struct reconcile_context *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct pod *pod = ctx->view.pods.items[i].pod;
        if (!pod || strcmp(pod->name, name) != 0)
            continue;
        return pod->node ? context_text(ctx, " in pod %s on node %s", pod->name, pod->node)
                         : context_text(ctx, " in pod %s", pod->name);
    }
    return "";
}

static const char *collective_text(struct reconcile_context *ctx, const struct training *t)
{
    const struct training_hang *hang = &t->hang;
    if (t->hang_collective < 0)
        return "";
    return context_text(ctx, "; its last collective: %" PRId64 "%s%s%s%s", t->hang_collective,
                        hang->op[0] ? ", " : "", hang->op, hang->unit[0] ? " of " : "", hang->unit);
}

/* Once for each hang, also where it was over before the agent was asked. */
static void tell_hang(struct reconcile_context *ctx, const struct training *before,
                      const struct training *told)
{
    const struct training_hang *hang = &told->hang;
    if (told->hang_ms == 0 || told->hang_rank < 0) {
        tell_hang_of_now(ctx, before, &ctx->status.training);
        return;
    }
    if (before->known && before->hang_ms == told->hang_ms && before->hang_rank == told->hang_rank)
        return;
    bool is_now = told->hung_rank == told->hang_rank;
    context_event(ctx, EVENT_WARNING, REASON_RANK_HUNG,
                  context_text(ctx,
                               "Rank %" PRId64 "%s %s%s%s at step %" PRId64
                               ", and others %s for it%s. Its log has its call stacks.",
                               told->hang_rank, told_pod_text(ctx, hang->pod),
                               is_now ? "hangs" : "hung", hang->phase[0] ? " in phase " : "",
                               hang->phase, told->hang_step > 0 ? told->hang_step : 0,
                               is_now ? "wait" : "waited", collective_text(ctx, told)));
}

/* ---- goodput ---- */

/* As far as it is seen; NULL: it is not. */
static const struct pod *pod_of_rank_0(const struct reconcile_context *ctx)
{
    enum replica_type first =
        ctx->job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
    const struct child *child = view_find(&ctx->view.pods, first, 0);
    return child ? child->pod : NULL;
}

/* Its container of the training runs, as far as is known. */
static bool is_running(const struct pod *pod)
{
    if (!pod || pod->phase != POD_RUNNING || pod->node_lost_ms)
        return false;
    return pod->started_ms || (!pod->exited && !pod->waiting_reason);
}

/* A process has told since the job was created, or resumed. */
static bool has_told(const struct reconcile_context *ctx)
{
    return ctx->status.training.process_ms != 0;
}

static bool is_complete(const struct reconcile_context *ctx)
{
    enum replica_type first =
        ctx->job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
    return history_is_complete(&ctx->status.history, first, 0);
}

/* Nobody tells, as was seen before: by another operator, say. It stays so until somebody does, or
 * until another container runs. In a recovery where nobody ever told no container runs. */
static bool stays_quiet(const struct reconcile_context *ctx, const struct pod *pod)
{
    const struct goodput *goodput = &ctx->status.goodput;
    bool quiet =
        goodput->now == GOODPUT_UNTOLD || (goodput->now == GOODPUT_RECOVERY && has_told(ctx));
    return quiet && pod->started_ms <= ctx->job->created_ms + goodput_sum_ms(goodput);
}

/* A container of rank 0 has run since the job was created, or resumed, whether or not it told. What
 * begin() says of a job that another operator began is not asked. */
static bool did_run(const struct reconcile_context *ctx)
{
    int now = ctx->status.goodput.now;
    return ctx->snapshot->status->goodput.known &&
           (now == GOODPUT_INSIDE || now == GOODPUT_UNTOLD || now == GOODPUT_RECOVERY);
}

/* What goes on now. */
static int kind_now(const struct reconcile_context *ctx, const struct pod *pod)
{
    if (is_running(pod) && !ctx->snapshot->quiet && !stays_quiet(ctx, pod))
        return GOODPUT_INSIDE;
    if (condition_is_true(&ctx->status, CONDITION_SUSPENDED))
        return GOODPUT_SUSPENDED;
    if (is_complete(ctx)) /* of a job that others decide */
        return has_told(ctx) ? TRAINING_SPENT_OTHER : GOODPUT_UNTOLD;
    if (has_told(ctx))
        return GOODPUT_RECOVERY;
    if (is_running(pod))
        return GOODPUT_UNTOLD;
    if (did_run(ctx))
        return GOODPUT_RECOVERY;
    return pod && pod->scheduled_ms ? GOODPUT_CONTAINER_START : GOODPUT_PENDING;
}

/* When it has begun. */
static int64_t since_of(const struct reconcile_context *ctx, const struct pod *pod, int kind)
{
    if (kind == GOODPUT_SUSPENDED)
        return condition_find(&ctx->status, CONDITION_SUSPENDED)->transition_ms;
    if (kind == GOODPUT_INSIDE)
        return pod->started_ms;
    if (kind == GOODPUT_RECOVERY && pod && pod->exited && pod->exited_ms)
        return pod->exited_ms;
    if (kind == GOODPUT_CONTAINER_START)
        return pod->scheduled_ms;
    return ctx->snapshot->now_ms;
}

static int inside_kind(const struct reconcile_context *ctx)
{
    return has_told(ctx) ? TRAINING_SPENT_OTHER : GOODPUT_UNTOLD;
}

static void turn(struct reconcile_context *ctx, int kind, int64_t since_ms)
{
    if (!ctx->snapshot->unaccounted)
        goodput_turn(&ctx->status.goodput, kind, inside_kind(ctx), since_ms, ctx->job->created_ms,
                     ctx->snapshot->now_ms);
}

static void turn_open(struct reconcile_context *ctx, int kind)
{
    if (!ctx->snapshot->unaccounted)
        goodput_turn_open(&ctx->status.goodput, kind);
}

/* The account begins with the job. Of one that another operator began nothing is known. */
static void begin(struct reconcile_context *ctx)
{
    bool is_new = ctx->snapshot->status->condition_count == 0;
    if (!ctx->status.goodput.known)
        turn(ctx, is_new ? GOODPUT_PENDING : GOODPUT_UNTOLD, ctx->job->created_ms);
}

/* What a process has not told yet may still be told, by the next one or by itself: until then it
 * stays open. */
static void follow_kind(struct reconcile_context *ctx)
{
    const struct pod *pod = pod_of_rank_0(ctx);
    struct goodput *goodput = &ctx->status.goodput;
    if (goodput->now == GOODPUT_PENDING && pod && pod->scheduled_ms)
        turn(ctx, GOODPUT_CONTAINER_START, pod->scheduled_ms);
    int kind = kind_now(ctx, pod);
    bool stays_open = (kind == GOODPUT_RECOVERY && has_told(ctx)) || kind == GOODPUT_UNTOLD ||
                      kind == TRAINING_SPENT_OTHER;
    if (goodput->now == GOODPUT_INSIDE && stays_open)
        turn_open(ctx, kind);
    else
        turn(ctx, kind, since_of(ctx, pod, kind));
}

/* ---- restarts of ranks ---- */

/* What rank 0 was told of restarts when its container began: ENV_RESTART_COUNT. In a cluster that
 * is its pod's for good, `shoal run` counts each start of a container. */
static int64_t restarts_before(const struct reconcile_context *ctx, const struct pod *pod)
{
    if (ctx->job->run_policy.restart_scope == SCOPE_JOB)
        return pod->attempt;
    const struct replica_history *replica =
        history_find(&ctx->status.history, pod->type, pod->index);
    if (!replica)
        return 0;
    bool is_for_good = pod->version && strcmp(replica->uid, pod->uid) == 0;
    return replica->earlier + (is_for_good ? 0 : replica->counted);
}

/* What the job resumed from is told again, until its pods of now are asked. */
static bool is_of_before(const struct training *before, const struct training *told)
{
    return before->known && !before->process_ms && told->progress_ms <= before->progress_ms;
}

/* The rest its launcher has added, which no history of pods knows of. Where the API server drops
 * what was told, and not the history, the count says how many of them were counted: those of other
 * pods among them, so that it counts too few rather than the same ones for ever. */
static void count_rank_restarts(struct reconcile_context *ctx, const struct training *before,
                                const struct training *told)
{
    const struct pod *pod = pod_of_rank_0(ctx);
    if (!pod || is_of_before(before, told))
        return;
    int64_t begun = restarts_before(ctx, pod);
    bool is_remembered = before->known && before->restarts >= 0;
    int64_t was = is_remembered ? before->restarts : begun + ctx->status.history.rank_restarts;
    int64_t more = told->restarts - (was > begun ? was : begun);
    if (more > 0 && more < INT32_MAX - ctx->status.history.rank_restarts)
        ctx->status.history.rank_restarts += (int32_t)more;
}

/* ---- what happens ---- */

static void take_over(struct reconcile_context *ctx, const struct training *told)
{
    struct training *training = &ctx->status.training;
    const struct training before = *training;
    const struct pod *pod = pod_of_rank_0(ctx);
    const struct goodput_start start = {.scheduled_ms = pod ? pod->scheduled_ms : 0};
    int64_t furthest_step = ctx->status.goodput.furthest_step;
    goodput_told(&ctx->status.goodput, &before, told, &start, ctx->job->created_ms,
                 ctx->snapshot->now_ms);
    if (ctx->status.goodput.furthest_step > furthest_step)
        policy_forgive_hardware(&ctx->status.history);
    count_rank_restarts(ctx, &before, told);
    training_merge(training, told);
    tell_first_step(ctx, &before, training);
    tell_checkpoint(ctx, &before, training);
    tell_recovery(ctx, &before, training);
    tell_hang(ctx, &before, told);
}

static void take_word(struct reconcile_context *ctx)
{
    begin(ctx);
    if (ctx->told)
        take_over(ctx, ctx->told);
    ctx->told = NULL;
}

void policy_training_follow(struct reconcile_context *ctx)
{
    take_word(ctx);
    follow_kind(ctx);
    /* Nobody could tell that it goes another way now, for hours if no node takes the pod. */
    const struct pod *pod = pod_of_rank_0(ctx);
    if (!pod || pod->phase != POD_RUNNING || pod->node_lost_ms)
        training_rest(&ctx->status.training);
}

void policy_training_suspend(struct reconcile_context *ctx)
{
    training_rest(&ctx->status.training);
}

void policy_training_resume(struct reconcile_context *ctx)
{
    const struct condition *suspended = condition_find(ctx->snapshot->status, CONDITION_SUSPENDED);
    take_word(ctx);                                         /* the last of what was suspended, */
    turn(ctx, GOODPUT_SUSPENDED, suspended->transition_ms); /* if no pass has seen it end */
    turn(ctx, GOODPUT_PENDING, ctx->snapshot->now_ms);
    training_forget_process(&ctx->status.training);
}

/* What went on until then went on until the end; only a process that ended with the job did not
 * begin to be replaced. */
void policy_training_finish(struct reconcile_context *ctx)
{
    int kind = ctx->status.goodput.now;
    bool has_recovered = ctx->snapshot->status->goodput.now == GOODPUT_RECOVERY;
    if (kind == GOODPUT_INSIDE || (kind == GOODPUT_RECOVERY && !has_recovered))
        kind = inside_kind(ctx);
    goodput_rest(&ctx->status.goodput, kind, ctx->job->created_ms, ctx->snapshot->now_ms);
    goodput_turn_open(&ctx->status.goodput, GOODPUT_INSIDE);
    training_rest(&ctx->status.training);
}
