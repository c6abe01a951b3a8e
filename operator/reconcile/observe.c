#include "operator/reconcile/observe.h"

#include "base/contract.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/incident.h"
#include "operator/reconcile/policy_avoid_node.h"
#include "operator/reconcile/restart.h"

#include <string.h>

static bool is_current(const struct reconcile_context *ctx, const struct child *child)
{
    return children_desired(ctx->job, child) &&
           !children_is_old_attempt(ctx->job, &ctx->status.history, child->pod);
}

/* Whether a pod that runs counts no more. */
static bool is_leaving(const struct reconcile_context *ctx, const struct child *child)
{
    return child->deleting || child->lost || !is_current(ctx, child);
}

void observe_count(struct reconcile_context *ctx)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &ctx->job->replicas[type];
        struct replica_status *count = &ctx->status.replicas[type];
        *count = (struct replica_status){.present = replica->present};
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++)
            count->succeeded += history_is_complete(&ctx->status.history, type, i);
    }
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        if (!children_desired(ctx->job, child) ||
            history_is_complete(&ctx->status.history, child->type, child->index))
            continue;
        struct replica_status *count = &ctx->status.replicas[child->type];
        /* As Kubeflow counts: a pod that still runs while it is deleted has failed. A worker that
         * only did not find its master has not. */
        if (child->pod->phase == POD_FAILED)
            count->failed += !child->pod->master_not_found;
        else if (child->pod->phase == POD_RUNNING && is_leaving(ctx, child))
            count->failed++;
        else if (child->pod->phase == POD_RUNNING)
            count->active++;
    }
}

void observe_inactive(struct reconcile_context *ctx)
{
    /* Pods that are cleaned up take their numbers along. So of a finished job a count may grow,
     * when late successes are seen, and does not shrink. */
    int32_t succeeded[REPLICA_TYPES] = {0};
    bool finished = condition_finished(&ctx->status);
    for (int type = 0; type < REPLICA_TYPES; type++) {
        if (!finished)
            ctx->status.replicas[type].present = ctx->job->replicas[type].present;
        ctx->status.replicas[type].active = 0;
    }
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct pod *pod = ctx->view.pods.items[i].pod;
        bool waiting = pod->phase == POD_PENDING || pod->phase == POD_UNKNOWN;
        ctx->status.replicas[pod->type].active +=
            pod->phase == POD_RUNNING || (waiting && !finished);
        succeeded[pod->type] += restart_succeeded(pod);
    }
    for (int type = 0; type < REPLICA_TYPES; type++) {
        struct replica_status *count = &ctx->status.replicas[type];
        if (succeeded[type] > count->succeeded)
            count->succeeded = succeeded[type];
        count->present |= ctx->job->replicas[type].present && (count->active || count->succeeded);
    }
}

/* Whether it never met its peers and is made again: it only waited, for its master or a node. */
static bool is_unmet(const struct reconcile_context *ctx, const struct pod *pod)
{
    return pod->master_not_found || policy_waits_for_others(pod, ctx->avoided);
}

/* With SCOPE_JOB a pod that vanished, as with its node, ends the attempt like one that failed: its
 * peers wait for it in vain. One that was not made yet, or that nobody met, is distinguished from
 * it by memory. */
static bool has_vanished(struct reconcile_context *ctx)
{
    struct history *history = &ctx->status.history;
    bool whole = true, vanished = false;
    size_t at = 0;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &ctx->job->replicas[type];
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
            const struct child *child = view_next(&ctx->view.pods, type, i, &at);
            bool there = child && is_current(ctx, child);
            if (history_is_complete(history, type, i) || (there && !is_unmet(ctx, child->pod)))
                continue;
            whole = false;
            if (there && i < history->formed[type])
                history->formed[type] = i;
            vanished |= i < history->formed[type];
        }
    }
    for (int type = 0; type < REPLICA_TYPES && whole; type++)
        if (ctx->job->replicas[type].present)
            history->formed[type] = (int32_t)ctx->job->replicas[type].replicas.value;
    return vanished;
}

/* Whether the pod's part in the job is done. */
static bool is_done(struct reconcile_context *ctx, const struct pod *pod)
{
    if (!restart_succeeded(pod))
        return false;
    history_complete(&ctx->status.history, pod->type, pod->index, ctx->arena);
    const struct pod_end end = {.container = API_CONTAINER_NAME, .code = pod->exit_code};
    if (pod->exited)
        exits_add(&ctx->exits, pod, &end, ctx->arena);
    return true;
}

/* What has succeeded stays so, though its pod goes before that is written. Where the pod is still
 * seen as it was, it is completed and told as any other. */
static void complete_unwritten(struct reconcile_context *ctx)
{
    const struct history *unwritten = ctx->snapshot->unwritten;
    for (int type = 0; unwritten && type < REPLICA_TYPES; type++) {
        for (int32_t i = 0; i < ctx->job->replicas[type].replicas.value; i++) {
            const struct child *child = view_find(&ctx->view.pods, type, i);
            bool is_seen = child && is_current(ctx, child) && restart_succeeded(child->pod);
            if (history_is_complete(unwritten, type, i) && !is_seen)
                history_complete(&ctx->status.history, type, i, ctx->arena);
        }
    }
}

void observe_completions(struct reconcile_context *ctx)
{
    complete_unwritten(ctx);
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        if (is_current(ctx, child) &&
            !history_is_complete(&ctx->status.history, child->type, child->index))
            is_done(ctx, child->pod);
    }
    exits_tell(&ctx->exits, ctx->job, ctx->plan);
}

/* The first look at a job that another operator began: what its pods went through before is not
 * counted. It may have been more than our limit is, and was answered already. */
static void begin_history(struct reconcile_context *ctx)
{
    struct history *history = &ctx->status.history;
    for (size_t i = 0; i < ctx->view.pods.count && !history->known; i++) {
        struct replica_history replica = history_replica(history, ctx->view.pods.items[i].pod);
        replica.counted = ctx->view.pods.items[i].pod->restart_count;
        if (replica.counted)
            history_put(history, replica, ctx->arena);
    }
    history->known = true;
}

/* Whether the pod goes though nothing in it has failed, so that its peers lose it. What has failed
 * is being deleted as well, by us. */
static bool leaves(const struct reconcile_context *ctx, const struct child *child)
{
    const struct pod *pod = child->pod;
    const struct replica_history replica = history_replica(&ctx->status.history, pod);
    bool avoids = policy_leaves_node(&ctx->status.history, pod);
    bool gone = child->deleting || child->lost || pod->disrupted || avoids;
    bool failed = !policy_explains_end(&ctx->status.history, pod) &&
                  (restart_failed(pod) || replica.counted > pod->restart_count);
    return gone && pod->phase != POD_PENDING && !pod->master_not_found && !failed &&
           !restart_succeeded(pod);
}

const char *observe_leaving(const struct reconcile_context *ctx, enum replica_type type)
{
    const char *how = NULL;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        if (child->type != type || !children_desired(ctx->job, child) || !child->pod ||
            (child->pod->phase != POD_FAILED && child->pod->phase != POD_RUNNING))
            continue;
        if (leaves(ctx, child) && !how)
            how = child->deleting         ? "are being deleted"
                  : child->pod->disrupted ? "were terminated by the system"
                  : child->lost           ? "are lost with their nodes"
                                          : "leave their nodes";
        else if (child->pod->phase == POD_FAILED && !leaves(ctx, child) &&
                 !child->pod->master_not_found)
            return NULL;
    }
    return how;
}

static void observe_leaving_pods(struct reconcile_context *ctx)
{
    struct history *history = &ctx->status.history;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        struct replica_history replica = history_replica(history, child->pod);
        if (replica.left || !leaves(ctx, child) || !is_current(ctx, child) ||
            history_is_complete(history, child->type, child->index))
            continue;
        incident_leave(history, &replica, ctx->snapshot->now_ms);
        history_put(history, replica, ctx->arena);
    }
}

/* Records what is new of a pod; returns whether it has failed. What a restart with policy Always
 * follows need not be a failure. */
static bool count_ends(struct reconcile_context *ctx, const struct pod *pod,
                       struct pod_changes *changes)
{
    struct history *history = &ctx->status.history;
    struct replica_history replica = history_replica(history, pod);
    /* A kubelet restarts containers without reporting each time, so a pass may see several restarts
     * at once. Counted is what the stored status says; the rest is new. */
    int32_t fresh = restart_failures(pod) - replica.counted;
    if (fresh <= 0)
        return false;
    bool failed = (restart_failed(pod) || !pod->end.container || pod->end.code != 0) &&
                  !policy_explains_end(history, pod);
    replica.counted += fresh;
    if (failed && incident_count(history, &replica, fresh, incident_lost_peer(pod),
                                 ctx->snapshot->now_ms) > 0)
        changes->last_failure = pod;
    history_put(history, replica, ctx->arena);
    if (pod->end.container)
        exits_add(&ctx->exits, pod, &pod->end, ctx->arena);
    if (failed && changes->failures == 0)
        changes->failed_type = pod->type;
    changes->failures += failed ? fresh : 0;
    return failed;
}

/* Whether the pod goes, and what its peers have begun with it ends. Nobody has met one that waited
 * for a node and only makes way for one that waits for others. */
static bool ends_attempt(const struct reconcile_context *ctx, const struct child *child)
{
    if (policy_waits_for_others(child->pod, ctx->avoided))
        return false;
    return child->deleting || child->lost || policy_leaves_node(&ctx->status.history, child->pod);
}

static void observe_pod(struct reconcile_context *ctx, const struct child *child,
                        struct pod_changes *changes)
{
    const struct pod *pod = child->pod;
    if (is_done(ctx, pod) || pod->master_not_found)
        return;
    bool failed = count_ends(ctx, pod, changes);
    enum restart_policy policy = ctx->job->replicas[pod->type].restart_policy;
    enum restart_verdict verdict = restart_judge(policy, pod);
    const struct history *history = &ctx->status.history;
    if (verdict == RESTART_FAILS_JOB && !changes->fatal && !policy_explains_end(history, pod))
        changes->fatal = pod;
    changes->restart_all |= failed || verdict == RESTART_REPLACE || ends_attempt(ctx, child);
}

/* What lost a peer comes after what it may have lost. */
struct pod_changes observe(struct reconcile_context *ctx)
{
    struct pod_changes changes = {0};
    struct history *history = &ctx->status.history;
    bool group = ctx->job->run_policy.restart_scope == SCOPE_JOB;
    begin_history(ctx);
    complete_unwritten(ctx);
    int32_t before = history->failures;
    policy_avoid_nodes(ctx);
    observe_leaving_pods(ctx);
    for (int lost_peer = 0; lost_peer < 2; lost_peer++) {
        for (size_t i = 0; i < ctx->view.pods.count; i++) {
            const struct child *child = &ctx->view.pods.items[i];
            if (incident_lost_peer(child->pod) == lost_peer && is_current(ctx, child) &&
                !history_is_complete(history, child->type, child->index))
                observe_pod(ctx, child, &changes);
        }
    }
    exits_tell(&ctx->exits, ctx->job, ctx->plan);
    changes.restart_all = group && (has_vanished(ctx) || changes.restart_all);
    /* All pods of a group restart together: however many of them failed, that was one attempt. */
    if (group && history->failures > before)
        history->failures = before + 1;
    return changes;
}
