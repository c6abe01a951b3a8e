#include "operator/reconcile/reconcile.h"

#include "base/contract.h"
#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/managed_by.h"
#include "operator/job/names.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/context.h"
#include "operator/reconcile/finish.h"
#include "operator/reconcile/observe.h"
#include "operator/reconcile/policy_autoscaler.h"
#include "operator/reconcile/policy_deadline.h"
#include "operator/reconcile/policy_gang.h"
#include "operator/reconcile/policy_preempt.h"
#include "operator/reconcile/policy_queue.h"
#include "operator/reconcile/policy_success.h"
#include "operator/reconcile/policy_suspend.h"
#include "operator/reconcile/policy_training.h"

#include <inttypes.h>
#include <string.h>

#define REASON_CREATED    API_KIND "Created"
#define REASON_LARGE      API_KIND "Large"
#define REASON_RUNNING    API_KIND "Running"
#define REASON_RESTARTING API_KIND "Restarting"
#define REASON_SUSPENDED  API_KIND "Suspended"
#define REASON_QUEUED     API_KIND "Queued"
#define REASON_RESUMED    API_KIND "Resumed"
#define REASON_INVALID    API_KIND "FailedValidation"

/* ---- the life of a job ---- */

/* Of more it is said what it costs: etcd takes 1.5 MiB, and the operator holds all jobs. */
enum { LARGE_BYTES = 256 << 10 };

static void set_created(struct reconcile_context *ctx)
{
    size_t bytes = ctx->snapshot->job_bytes;
    if (ctx->status.condition_count > 0)
        return;
    ctx->status.history.known = true; /* from its beginning on */
    context_condition(ctx, CONDITION_CREATED, true, REASON_CREATED,
                      context_text(ctx, "PyTorchJob %s is created.", ctx->job->name));
    if (bytes > LARGE_BYTES)
        context_event(
            ctx, EVENT_WARNING, REASON_LARGE,
            context_text(ctx,
                         "PyTorchJob %s is %zu KiB of text, which the API server and the "
                         "operator keep in memory: put scripts and data into a ConfigMap or a "
                         "volume.",
                         ctx->job->name, bytes >> 10));
}

/* What of the templates is not followed; said when the job starts. */
static void warn_ignored_template_fields(struct reconcile_context *ctx)
{
    const char *gang = ctx->snapshot->options.gang.scheduler_name;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_template *template_ = &ctx->job->replicas[type].template_;
        if (template_->restart_policy)
            context_event(ctx, EVENT_WARNING, "SetPodTemplateRestartPolicy",
                          "Restart policy in pod template will be overwritten by restart policy in "
                          "replica spec");
        if (gang && template_->scheduler_name && strcmp(template_->scheduler_name, gang) != 0)
            context_event(
                ctx, EVENT_WARNING, "SetPodTemplateSchedulerName",
                "Another scheduler is specified when gang-scheduling is enabled and it will "
                "not be overwritten");
    }
}

/* The job is active from here on, for the first time (once it is `admitted`: time in a queue is no
 * time of the job) or again. Counted before it: what was seen of the pods belongs to the time
 * before. */
static void set_started(struct reconcile_context *ctx, struct pod_changes *changes, bool admitted)
{
    bool resumed = condition_is_true(&ctx->status, CONDITION_SUSPENDED);
    if (resumed) {
        const char *message = context_text(ctx, "PyTorchJob %s is resumed.", ctx->job->name);
        context_condition(ctx, CONDITION_SUSPENDED, false, REASON_RESUMED, message);
        /* The last condition is the state: "Suspended" would be wrong from here on. */
        context_condition(ctx, CONDITION_RESTARTING, true, REASON_RESUMED, message);
        context_event(ctx, EVENT_NORMAL, REASON_RESUMED, message);
        history_start_over(&ctx->status.history);
        policy_training_resume(ctx);
        if (ctx->job->run_policy.restart_scope == SCOPE_JOB && ctx->status.start_ms)
            changes->restart_all = true;
    }
    if (!resumed && (ctx->status.start_ms || !admitted))
        return;
    warn_ignored_template_fields(ctx);
    ctx->status.start_ms = ctx->snapshot->now_ms;
    ctx->starts = true;
}

/* backoffLimit restarts are granted; the failure after them fails the job. */
static bool backoff_exceeded(const struct reconcile_context *ctx)
{
    struct optional limit = ctx->job->run_policy.backoff_limit;
    return limit.set && limit.value >= 0 && ctx->status.history.failures > limit.value;
}

static enum replica_type deciding_type(const struct job *job)
{
    return job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
}

static bool is_running(const struct reconcile_context *ctx)
{
    return ctx->status.replicas[deciding_type(ctx->job)].active > 0;
}

/* A warning is what has failed; what people delete, drain and evict is not. */
static const char *restarting_text(struct reconcile_context *ctx, const struct pod_changes *changes,
                                   enum event_type *ret_type)
{
    const struct replica_status *replicas = ctx->status.replicas;
    enum replica_type type = replicas[REPLICA_MASTER].failed > 0 ? REPLICA_MASTER : REPLICA_WORKER;
    const char *name = ctx->job->name, *leaving = observe_leaving(ctx, type);
    *ret_type = EVENT_WARNING;
    if (changes->failures > 0 || (replicas[type].failed > 0 && !leaving))
        return context_text(
            ctx, "PyTorchJob %s is restarting because %" PRId32 " %s replica(s) failed.", name,
            changes->failures > 0 ? changes->failures : replicas[type].failed,
            names_replica_type(changes->failures > 0 ? changes->failed_type : type));
    *ret_type = EVENT_NORMAL;
    if (replicas[type].failed > 0)
        return context_text(ctx, "PyTorchJob %s is restarting because %" PRId32 " %s pod(s) %s.",
                            name, replicas[type].failed, names_replica_type(type), leaving);
    if (is_running(ctx))
        return context_text(ctx, "PyTorchJob %s is restarting because pods are missing.", name);
    return context_text(ctx, "PyTorchJob %s is restarting because no %s replica is running.", name,
                        names_replica_type(deciding_type(ctx->job)));
}

/* Running while what decides runs and nothing is failed; Restarting from a failure, from the loss
 * of what ran, or from the end of an attempt, until then. */
static void set_state(struct reconcile_context *ctx, const struct pod_changes *changes)
{
    const struct job *job = ctx->job;
    const struct replica_status *replicas = ctx->status.replicas;
    enum replica_type failed =
        replicas[REPLICA_MASTER].failed > 0 ? REPLICA_MASTER : REPLICA_WORKER;
    bool running = is_running(ctx) && replicas[failed].failed == 0 && !changes->restart_all;
    bool restarting = replicas[failed].failed > 0 || changes->restart_all ||
                      (!running && condition_is_true(&ctx->status, CONDITION_RUNNING));
    enum event_type type;
    const char *message = restarting_text(ctx, changes, &type);
    bool begins = restarting && !condition_is_true(&ctx->status, CONDITION_RESTARTING);
    if (begins)
        context_condition(ctx, CONDITION_RESTARTING, true, REASON_RESTARTING, message);
    if (begins || changes->failures > 0)
        context_event(ctx, type, REASON_RESTARTING, message);
    if (running)
        context_condition(
            ctx, CONDITION_RUNNING, true, REASON_RUNNING,
            job->replicas[REPLICA_MASTER].present
                ? context_text(ctx, "PyTorchJob %s is running.", job->name)
                : context_text(ctx, "PyTorchJob %s/%s is running.", job->namespace_, job->name));
}

/* Tells what stands in the way: each blocker once. What is expected may have other words all the
 * time (Kueue's, a scheduler's): they are in the condition, and are no event. */
static void set_waiting(struct reconcile_context *ctx, const struct blocker *blocker)
{
    const struct condition *was = condition_find(&ctx->status, CONDITION_WAITING);
    bool goes_on =
        was && blocker->expected && blocker->reason && strcmp(was->reason, blocker->reason) == 0;
    if (condition_wait(&ctx->status, blocker->reason, blocker->message, ctx->snapshot->now_ms) &&
        !goes_on)
        context_event(ctx, blocker->expected ? EVENT_NORMAL : EVENT_WARNING, blocker->reason,
                      blocker->message);
}

/* What was refused may be what an expected blocker waits for, and stands behind no pod's trouble:
 * a missing right concerns all of them. */
static void set_refused_blocker(const struct reconcile_context *ctx, struct blocker *blocker)
{
    const char *refused = ctx->snapshot->refused;
    if (refused && (!blocker->reason || blocker->expected))
        *blocker = (struct blocker){.reason = "Refused", .message = refused};
}

/* The job goes on: its pods and what stands beside them become as they shall be. */
static void reconcile_children(struct reconcile_context *ctx, const struct pod_changes *changes,
                               const struct queue_verdict *queue, struct blocker *blocker)
{
    bool is_blocked = queue->state == QUEUE_BLOCKED; /* then the size that counts may be unknown */
    set_state(ctx, changes);
    ctx->status.history.restarts = ctx->status.history.failures;
    if (changes->restart_all)
        history_next_attempt(&ctx->status.history);
    policy_queue_sync(ctx, queue);
    if (!is_blocked)
        policy_gang_sync(ctx->snapshot, ctx->plan);
    policy_preempt(ctx, !blocker->reason);
    children_sync(ctx->plan, ctx->snapshot, &ctx->view, &ctx->status.history, blocker);
    set_refused_blocker(ctx, blocker);
    if (!is_blocked)
        policy_autoscaler_sync(ctx->snapshot, ctx->plan, blocker);
    policy_waiting(ctx->job, &ctx->view, blocker, ctx->arena);
    set_waiting(ctx, blocker);
    context_requeue(ctx, policy_deadline_ms(ctx->job, &ctx->status));
    context_requeue(ctx, ctx->view.recheck_ms);
}

static bool deadline_exceeded(const struct reconcile_context *ctx)
{
    return !ctx->starts && ctx->snapshot->now_ms >= policy_deadline_ms(ctx->job, &ctx->status);
}

static void reconcile_active(struct reconcile_context *ctx, const struct queue_verdict *queue)
{
    const struct job *job = ctx->job;
    set_created(ctx);
    for (int type = 0; type < REPLICA_TYPES; type++)
        history_trim(&ctx->status.history, type, (int32_t)job->replicas[type].replicas.value);
    struct pod_changes changes = observe(ctx);
    struct blocker blocker =
        queue->blocker.reason ? queue->blocker : policy_gang_blocker(ctx->snapshot, ctx->arena);
    set_started(ctx, &changes, !blocker.reason);
    observe_count(ctx);
    policy_training_follow(ctx);
    if (policy_success(job, &ctx->status))
        finish_succeeded(ctx);
    else if (changes.fatal)
        finish_failed(ctx, changes.fatal);
    else if (backoff_exceeded(ctx))
        finish_by_limit(ctx, changes.last_failure);
    else if (deadline_exceeded(ctx))
        finish_by_deadline(ctx);
    else
        reconcile_children(ctx, &changes, queue, &blocker);
}

/* What was spoilt while the job sleeps is said at once, and not when it is resumed. */
static void reconcile_suspended(struct reconcile_context *ctx, const struct queue_verdict *queue)
{
    bool queued = queue->state == QUEUE_HELD;
    const char *reason = queued ? REASON_QUEUED : REASON_SUSPENDED;
    struct blocker blocker = {.reason = ctx->job->invalid ? REASON_INVALID : NULL,
                              .message = ctx->job->invalid};
    set_created(ctx);
    finish_delete_podgroup_hpa(ctx);
    const char *message =
        queued ? context_text(ctx, "PyTorchJob %s waits in its queue.", ctx->job->name)
               : context_text(ctx, "PyTorchJob %s is suspended.", ctx->job->name);
    if (condition_is_true(&ctx->status, CONDITION_RUNNING))
        context_condition(ctx, CONDITION_RUNNING, false, reason, message);
    if (context_condition(ctx, CONDITION_SUSPENDED, true, reason, message))
        context_event(ctx, EVENT_NORMAL, reason, message);
    if (queued) {
        blocker = queue->blocker;
        set_refused_blocker(ctx, &blocker);
        policy_queue_sync(ctx, queue);
    } else {
        policy_queue_release(ctx);
    }
    set_waiting(ctx, &blocker); /* forgets that of a resumption that was not seen */
    policy_training_follow(ctx);
    policy_training_suspend(ctx);
    observe_inactive(ctx);
    children_delete_all(ctx->plan, &ctx->view);
    context_requeue(ctx, ctx->view.recheck_ms);
}

static void reconcile_invalid(struct reconcile_context *ctx)
{
    set_created(ctx);
    context_condition(ctx, CONDITION_FAILED, true, REASON_INVALID, ctx->job->invalid);
    context_event(ctx, EVENT_WARNING, REASON_INVALID, ctx->job->invalid);
    ctx->status.completion_ms = ctx->snapshot->now_ms;
}

/* The job with as many replicas as are seen or remembered: what it says of them may be
 * the invalid field. */
static const struct job *job_as_seen(const struct reconcile_context *ctx)
{
    const struct history *history = &ctx->status.history, *unwritten = ctx->snapshot->unwritten;
    struct job *job = arena_new(ctx->arena, struct job);
    *job = *ctx->job;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        struct replica_spec *replica = &job->replicas[type];
        int64_t seen = history->completed_count[type];
        if (unwritten && unwritten->completed_count[type] > seen)
            seen = unwritten->completed_count[type];
        for (size_t i = 0; i < ctx->view.pods.count; i++) {
            const struct child *child = &ctx->view.pods.items[i];
            if (child->type == (enum replica_type)type && child->index >= seen)
                seen = child->index + 1;
        }
        replica->present |= ctx->status.replicas[type].present || seen > 0;
        replica->replicas.value = seen;
    }
    return job;
}

/* The specification became invalid after the job was accepted: nothing is made, deleted or failed
 * by it until that is fixed, as that would lose work over a mistake. What needs none of it goes on:
 * the counts, what the training tells, and the end of a job whose master is done. A deadline does,
 * too, unless it is the invalid field. */
static void reconcile_invalid_edit(struct reconcile_context *ctx)
{
    struct blocker blocker = {.reason = REASON_INVALID, .message = ctx->job->invalid};
    set_created(ctx);
    if (condition_is_true(&ctx->status, CONDITION_SUSPENDED)) {
        set_waiting(ctx, &blocker);
        return;
    }
    ctx->job = job_as_seen(ctx);
    observe_completions(ctx);
    observe_count(ctx);
    policy_training_follow(ctx);
    if (history_is_complete(&ctx->status.history, REPLICA_MASTER, 0))
        finish_succeeded(ctx);
    else if (deadline_exceeded(ctx))
        finish_by_deadline(ctx);
    else
        context_requeue(ctx, policy_deadline_ms(ctx->job, &ctx->status));
    set_waiting(ctx, &blocker);
}

/* Without sight of its children nothing can be decided about a job: that is reported, in the words
 * of the API server, which name the right that is missing. */
static void reconcile_forbidden(struct reconcile_context *ctx)
{
    struct blocker blocker = {.reason = "Forbidden", .message = ctx->snapshot->list_forbidden};
    if (condition_finished(&ctx->status))
        return;
    if (ctx->job->run_policy.suspend && condition_is_true(&ctx->status, CONDITION_SUSPENDED))
        blocker.reason = NULL; /* it sleeps, and is to */
    set_created(ctx);
    set_waiting(ctx, &blocker);
}

/* ---- the pass ---- */

struct plan *reconcile(const struct snapshot *snapshot, struct arena *arena)
{
    if (!managed_by_us(snapshot->job) || snapshot->job->deleting)
        return plan_open(arena);
    const struct queue_verdict queue = policy_queue(snapshot, arena);
    struct snapshot admitted = *snapshot;
    admitted.job = policy_queue_job(snapshot, arena);
    const struct job *job = admitted.job;
    struct reconcile_context ctx = context_open(&admitted, arena);
    if (snapshot->list_forbidden)
        reconcile_forbidden(&ctx);
    else if (condition_finished(&ctx.status))
        finish_go_on(&ctx);
    else if (job->invalid && !condition_is_true(&ctx.status, CONDITION_CREATED))
        reconcile_invalid(&ctx);
    else if (queue.state == QUEUE_HELD || policy_suspended(job, &ctx.status, &ctx.view))
        reconcile_suspended(&ctx, &queue);
    else if (job->invalid)
        reconcile_invalid_edit(&ctx);
    else
        reconcile_active(&ctx, &queue);
    context_publish(&ctx);
    return ctx.plan;
}
