#include "operator/reconcile/policy_preempt.h"

#include "base/contract.h"
#include "operator/job/history.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/policy_avoid_node.h"
#include "operator/reconcile/policy_deadline.h"
#include "operator/reconcile/policy_gang.h"
#include "operator/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

static bool meets_at_worker_0(const struct job *job)
{
    const struct elastic_policy *elastic = &job->elastic;
    return elastic->present && !elastic->standalone && !elastic->rdzv_host &&
           (!elastic->rdzv_backend || strcmp(elastic->rdzv_backend, "c10d") == 0) &&
           !job->replicas[REPLICA_MASTER].present && job->run_policy.restart_scope == SCOPE_REPLICA;
}

static bool waits_for_node(const struct pod *pod)
{
    return pod->phase == POD_PENDING && !pod->node;
}

static bool has_node(const struct pod *pod)
{
    return pod->node || pod->phase == POD_RUNNING;
}

/* With how many workers the job can run. */
static int64_t fewest(const struct reconcile_context *ctx)
{
    int64_t min = ctx->job->elastic.min_replicas.value;
    if (ctx->snapshot->options.gang.scheduler == GANG_NONE)
        return min;
    int64_t group = policy_gang_spec(ctx->snapshot, ctx->arena).min_member;
    return group > min ? group : min;
}

static int64_t patience_s(const struct job *job)
{
    const struct optional *seconds = &job->elastic.shrink_after_s;
    return seconds->set ? seconds->value : SHRINK_AFTER_S;
}

/* When worker 0 has waited for room for long enough; POLICY_NEVER: it does not wait for any. */
static int64_t due_ms(const struct reconcile_context *ctx, const struct child *first)
{
    const struct pod *pod = first ? first->pod : NULL;
    if (!pod || first->deleting || !waits_for_node(pod) ||
        pod->created_ms <= ctx->status.history.worker_0_ms || !pod->waiting_reason ||
        strcmp(pod->waiting_reason, REASON_UNSCHEDULABLE) != 0 ||
        policy_waits_for_others(pod, ctx->avoided))
        return POLICY_NEVER;
    return pod->created_ms + 1000 * patience_s(ctx->job);
}

static bool is_another(const struct child *child)
{
    return child->type == REPLICA_WORKER && child->index > 0;
}

/* Whether it has room that would be worker 0's if the pod were deleted. */
static bool runs_well(const struct reconcile_context *ctx, const struct child *child)
{
    const struct history *history = &ctx->status.history;
    return is_another(child) && child->pod->phase == POD_RUNNING && !child->deleting &&
           !child->lost && !child->pod->node_lost_ms && children_desired(ctx->job, child) &&
           !policy_leaves_node(history, child->pod);
}

static void choose(struct reconcile_context *ctx, const struct child *first)
{
    int64_t running = 0;
    const struct child *last = NULL;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        if (!runs_well(ctx, &ctx->view.pods.items[i]))
            continue;
        last = &ctx->view.pods.items[i];
        running++;
    }
    if (!last || running < fewest(ctx))
        return;
    const char *why = first->pod->waiting_message;
    ctx->status.history.preempted = last->index;
    context_event(ctx, EVENT_WARNING, "WorkerPreempted",
                  context_text(ctx,
                               "Pod %s is deleted to make room for pod %s, for which all others "
                               "wait: after %" PRId64 " s it is " REASON_UNSCHEDULABLE "%s%s",
                               last->name, first->name, patience_s(ctx->job), why ? ": " : "",
                               why ? why : ""));
}

/* Whether the others that have nodes are enough, with worker 0. */
static bool are_enough(const struct reconcile_context *ctx)
{
    int64_t count = 1;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        count += is_another(child) && has_node(child->pod) && !child->deleting && !child->lost &&
                 child->pod->phase != POD_FAILED && child->index != ctx->status.history.preempted &&
                 children_desired(ctx->job, child);
    }
    return count >= fewest(ctx);
}

static void mark(struct reconcile_context *ctx, bool is_due)
{
    const struct history *history = &ctx->status.history;
    ctx->view.keeps_room = are_enough(ctx);
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        struct child *child = &ctx->view.pods.items[i];
        child->preempted =
            policy_is_kept_out(&ctx->view, history, child->type, child->index) &&
            (waits_for_node(child->pod) || (child->index == history->preempted && is_due));
    }
}

void policy_preempt(struct reconcile_context *ctx, bool may_choose)
{
    struct history *history = &ctx->status.history;
    const struct child *first = view_find(&ctx->view.pods, REPLICA_WORKER, 0);
    int64_t at_ms = due_ms(ctx, first);
    bool is_due = ctx->snapshot->now_ms >= at_ms;
    if (!meets_at_worker_0(ctx->job)) {
        history->preempted = 0;
        return;
    }
    if (first && restart_has_run(first->pod) && first->pod->created_ms > history->worker_0_ms) {
        history->preempted = 0;
        history->worker_0_ms = first->pod->created_ms;
    }
    if (!history->preempted && may_choose && is_due)
        choose(ctx, first);
    if (history->preempted)
        mark(ctx, is_due);
    bool is_open = history->preempted
                       ? view_find(&ctx->view.pods, REPLICA_WORKER, history->preempted) != NULL
                       : may_choose;
    if (!is_due && is_open)
        context_requeue(ctx, at_ms);
}

bool policy_is_kept_out(const struct view *view, const struct history *history,
                        enum replica_type type, int32_t index)
{
    return history->preempted && type == REPLICA_WORKER && index > 0 &&
           (index == history->preempted || view->keeps_room);
}
