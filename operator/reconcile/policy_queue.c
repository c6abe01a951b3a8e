#include "operator/reconcile/policy_queue.h"

#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/names.h"

#include <inttypes.h>
#include <string.h>

/* ---- what the job asks for ---- */

/* Whether its Workload is ours to keep. */
static bool is_asked(const struct snapshot *snapshot)
{
    const struct job *job = snapshot->job;
    return snapshot->options.kueue != KUEUE_OFF && job->queue.name && !job->queue.prebuilt &&
           !job->invalid && !snapshot->queue.other;
}

/* Of the job as its user wrote it, which may have more workers than are admitted. */
static struct workload_spec wanted(const struct snapshot *snapshot, struct arena *arena)
{
    const struct job *job = snapshot->job;
    struct workload_spec spec = {.queue = job->queue.name,
                                 .priority = snapshot->queue.priority,
                                 .max_execution_s = (int32_t)job->queue.max_execution_s};
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present)
            spec.counts[type] = (int32_t)job->replicas[type].replicas.value;
    if (job->elastic.present && job->elastic.min_replicas.value < spec.counts[REPLICA_WORKER])
        spec.min_workers = (int32_t)job->elastic.min_replicas.value;
    /* Kueue takes minCount away where partial admission is off: so it is told by the hash. */
    spec.pods_hash = arena_printf(arena, "%s-%" PRId32 "-%" PRId32, job->queue.templates_hash,
                                  spec.min_workers, spec.max_execution_s);
    return spec;
}

static bool same_class(const struct workload_priority *a, const struct workload_priority *b)
{
    return a->source == b->source && strcmp(a->class_name, b->class_name) == 0;
}

/* With quota the queue is fixed, and so is the priority but for another class of Kueue's. */
static bool is_outdated(const struct workload *workload, const struct workload_spec *spec)
{
    bool same_queue = strcmp(workload->spec.queue, spec->queue) == 0;
    bool may_change =
        !workload->quota_reserved || (workload->spec.priority.source == PRIORITY_WORKLOAD_CLASS &&
                                      spec->priority.source == PRIORITY_WORKLOAD_CLASS);
    return (!same_queue && !workload->quota_reserved) ||
           (may_change && !same_class(&workload->spec.priority, &spec->priority));
}

/* Of this type: those admitted. */
static int32_t admitted_count(const struct snapshot *snapshot, enum replica_type type)
{
    const struct replica_spec *replica = &snapshot->job->replicas[type];
    const struct optional *count = &snapshot->queue.workload->assigned[type].count;
    int32_t replicas = replica->present ? (int32_t)replica->replicas.value : 0;
    return count->set && count->value < replicas ? (int32_t)count->value : replicas;
}

/* How many pods of this type are still to end. A job that sleeps begins anew. */
static int32_t needed(const struct snapshot *snapshot, enum replica_type type)
{
    const struct job_status *status = snapshot->status;
    bool begins_anew = condition_is_true(status, CONDITION_SUSPENDED);
    int32_t replicas = admitted_count(snapshot, type), count = 0;
    for (int32_t i = 0; i < replicas; i++)
        count += begins_anew || !history_is_complete(&status->history, type, i);
    return count;
}

/* Whether it stands for another job than this. What only shrinks still fits once it has quota, and
 * a least number of workers that follows from that is no reason then. */
static bool is_misfit(const struct snapshot *snapshot, const struct workload_spec *spec)
{
    const struct workload *workload = snapshot->queue.workload;
    const char *templates = snapshot->job->queue.templates_hash;
    bool shrinks = false, has_quota = workload->quota_reserved;
    bool runs = workload->admitted && !workload->evicted;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        int32_t asked = workload->spec.counts[type], now = spec->counts[type];
        if ((asked == 0) != (now == 0) || now > asked || (now < asked && !has_quota) ||
            (runs && needed(snapshot, type) > asked - workload->reclaimable[type]))
            return true;
        shrinks |= now < asked;
    }
    return (has_quota && strcmp(workload->spec.queue, spec->queue) != 0) ||
           strncmp(workload->spec.pods_hash, templates, strlen(templates)) != 0 ||
           (!shrinks && strcmp(workload->spec.pods_hash, spec->pods_hash) != 0);
}

/* ---- what Kueue says ---- */

static struct blocker says(const char *reason, const char *message, bool expected)
{
    return (struct blocker){.reason = reason, .message = message, .expected = expected};
}

static struct blocker unmade(const struct snapshot *snapshot, struct arena *arena)
{
    const struct job *job = snapshot->job;
    const struct workload_priority *priority = &snapshot->queue.priority;
    if (snapshot->queue.priority_unknown)
        return says("WorkloadPriorityUnknown",
                    arena_printf(arena, "%s \"%s\" is not known; its Workload waits for it",
                                 priority->source == PRIORITY_POD_CLASS ? "PriorityClass"
                                                                        : "WorkloadPriorityClass",
                                 priority->class_name),
                    false);
    return says("QueuePending",
                arena_printf(arena, "Workload %s is not made yet; its queue is %s",
                             names_workload(arena, job), job->queue.name),
                true);
}

static struct blocker evicted(const struct workload *workload, struct arena *arena)
{
    const char *reason = workload->eviction_reason, *colon = *workload->message ? ": " : "";
    return says("QueueEvicted",
                arena_printf(arena, "Workload %s is evicted from queue %s%s%s%s%s%s",
                             workload->name, workload->spec.queue, *reason ? " (" : "", reason,
                             *reason ? ")" : "", colon, workload->message),
                true);
}

static struct blocker waiting(const struct workload *workload, struct arena *arena)
{
    if (!workload->active)
        return says("QueueDeactivated",
                    arena_printf(arena,
                                 "Workload %s is deactivated; its spec.active true would bring it "
                                 "back into queue %s",
                                 workload->name, workload->spec.queue),
                    true);
    return says("QueuePending",
                arena_printf(arena, "Workload %s waits in queue %s: %s", workload->name,
                             workload->spec.queue,
                             *workload->message ? workload->message
                             : workload->quota_reserved
                                 ? "its quota is reserved, and its admission "
                                   "checks go on"
                                 : "Kueue has not looked at it yet"),
                true);
}

/* Why the job may have no pods; no reason: it may. */
static struct blocker hold(const struct snapshot *snapshot, bool misfit, struct arena *arena)
{
    const struct workload *workload = snapshot->queue.workload;
    if (!workload)
        return unmade(snapshot, arena);
    if (workload->deleting || misfit)
        return says("WorkloadReplaced",
                    arena_printf(arena, "Workload %s %s, and another one follows it",
                                 workload->name,
                                 misfit ? "does not fit the job any more" : "is being deleted"),
                    true);
    if (workload->finished)
        return says("WorkloadFinished",
                    arena_printf(arena,
                                 "Workload %s says that it has finished, and the job has not; "
                                 "delete the Workload, and it is made anew",
                                 workload->name),
                    false);
    if (workload->evicted && workload->quota_reserved)
        return evicted(workload, arena);
    return workload->admitted ? (struct blocker){0} : waiting(workload, arena);
}

struct queue_verdict policy_queue(const struct snapshot *snapshot, struct arena *arena)
{
    struct queue_verdict verdict = {.state = QUEUE_NONE};
    const struct workload *workload = snapshot->queue.workload;
    if (!is_asked(snapshot) || snapshot->job->run_policy.suspend)
        return verdict;
    if (snapshot->options.kueue == KUEUE_UNSEEN) {
        /* What waits goes on waiting; of what runs nobody knows better. */
        verdict.state =
            condition_is_true(snapshot->status, CONDITION_SUSPENDED) ? QUEUE_HELD : QUEUE_BLOCKED;
        verdict.blocker =
            says("QueueUnseen",
                 arena_printf(arena,
                              "the job is for queue %s, and the API server shows no Workloads: is "
                              "Kueue installed, and are the roles of deploy/kueue bound?",
                              snapshot->job->queue.name),
                 false);
        return verdict;
    }
    struct workload_spec spec = wanted(snapshot, arena);
    verdict.misfit = workload && !workload->deleting && is_misfit(snapshot, &spec);
    verdict.blocker = hold(snapshot, verdict.misfit, arena);
    verdict.state = verdict.blocker.reason ? QUEUE_HELD : QUEUE_ADMITTED;
    if (verdict.state == QUEUE_ADMITTED && snapshot->queue.obstacle) {
        verdict.state = QUEUE_BLOCKED;
        verdict.blocker = says("AdmissionNotFollowed", snapshot->queue.obstacle, false);
    }
    return verdict;
}

/* ---- what follows for the pods ---- */

/* Whether its pods are made as Kueue admitted them. */
static bool is_placed(const struct snapshot *snapshot)
{
    const struct workload *workload = snapshot->queue.workload;
    return is_asked(snapshot) && workload && workload->admitted && !workload->evicted;
}

const struct job *policy_queue_job(const struct snapshot *snapshot, struct arena *arena)
{
    if (!is_placed(snapshot))
        return snapshot->job;
    struct job *job = arena_new(arena, struct job);
    *job = *snapshot->job;
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present)
            job->replicas[type].replicas.value = admitted_count(snapshot, type);
    return job;
}

const struct placement *policy_queue_placement(const struct snapshot *snapshot,
                                               enum replica_type type, struct arena *arena)
{
    if (!is_placed(snapshot) || !snapshot->queue.fields[type])
        return NULL;
    struct placement *placement = arena_new(arena, struct placement);
    placement->fields = snapshot->queue.fields[type];
    for (int each = 0; each < REPLICA_TYPES; each++)
        placement->replicas[each] = admitted_count(snapshot, each);
    return placement;
}

/* ---- the life of the Workload ---- */

static bool has_pods(const struct reconcile_context *ctx)
{
    return ctx->view.pods.count > 0;
}

static void create(struct reconcile_context *ctx)
{
    struct workload_spec *spec = arena_new(ctx->arena, struct workload_spec);
    *spec = wanted(ctx->snapshot, ctx->arena);
    plan_add(ctx->plan, (struct action){.kind = ACTION_CREATE_WORKLOAD,
                                        .name = names_workload(ctx->arena, ctx->job),
                                        .workload = spec});
}

/* What changes in place. Returns whether anything does: the version then seen is over. */
static bool update(struct reconcile_context *ctx)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    struct workload_spec *spec = arena_new(ctx->arena, struct workload_spec);
    *spec = wanted(ctx->snapshot, ctx->arena);
    if (!is_outdated(workload, spec) || ctx->snapshot->queue.priority_unknown)
        return false;
    plan_add(ctx->plan, (struct action){.kind = ACTION_UPDATE_WORKLOAD,
                                        .name = workload->name,
                                        .uid = workload->uid,
                                        .version = workload->version,
                                        .workload = spec});
    return true;
}

static void remove_workload(struct reconcile_context *ctx)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    if (workload && !workload->deleting)
        plan_add(ctx->plan, (struct action){.kind = ACTION_DELETE_WORKLOAD,
                                            .name = workload->name,
                                            .uid = workload->uid});
}

static void tell(struct reconcile_context *ctx, const struct workload_status *told)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    struct workload_status *status = arena_new(ctx->arena, struct workload_status);
    *status = *told;
    status->conditions = workload->conditions;
    plan_add(ctx->plan, (struct action){.kind = ACTION_SET_WORKLOAD_STATUS,
                                        .name = workload->name,
                                        .uid = workload->uid,
                                        .version = workload->version,
                                        .workload_status = status});
}

/* Whether all that is admitted runs or has succeeded. */
static bool is_ready(const struct reconcile_context *ctx)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &ctx->job->replicas[type];
        const struct replica_status *status = &ctx->status.replicas[type];
        if (replica->present && status->active + status->succeeded < replica->replicas.value)
            return false;
    }
    return true;
}

/* READY_ABSENT: as it is. */
static enum pods_ready readiness(const struct reconcile_context *ctx, bool admitted)
{
    enum pods_ready was = ctx->snapshot->queue.workload->pods_ready;
    bool once = was == READY_STARTED || was == READY_RECOVERED;
    if (!admitted)
        return once || was == READY_WAIT_FOR_RECOVERY ? READY_WAIT_FOR_START : READY_ABSENT;
    if (is_ready(ctx) == once)
        return READY_ABSENT;
    if (once)
        return READY_WAIT_FOR_RECOVERY;
    return was == READY_WAIT_FOR_RECOVERY ? READY_RECOVERED : is_ready(ctx) ? READY_STARTED : was;
}

/* Pods that hold quota though no replica needs them: they are on their way out. */
static int32_t surplus(const struct reconcile_context *ctx, enum replica_type type)
{
    int32_t count = 0;
    for (size_t i = 0; i < ctx->view.pods.count; i++) {
        const struct child *child = &ctx->view.pods.items[i];
        bool ended = child->pod->phase == POD_SUCCEEDED || child->pod->phase == POD_FAILED;
        bool wanted_ = !child->surplus && child->index < ctx->job->replicas[type].replicas.value &&
                       !history_is_complete(&ctx->status.history, type, child->index);
        count += child->type == type && !ended && !wanted_;
    }
    return count;
}

/* What quota of this type is used no more: it grows alone. */
static int32_t reclaimable(const struct reconcile_context *ctx, enum replica_type type)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    const struct optional *count = &workload->assigned[type].count;
    int32_t asked = workload->spec.counts[type], was = workload->reclaimable[type];
    int32_t granted = count->set && count->value < asked ? (int32_t)count->value : asked;
    int32_t used = needed(ctx->snapshot, type) + surplus(ctx, type);
    int32_t free_ = used < granted ? asked - used : 0;
    return free_ > was ? free_ : was;
}

static void tell_running(struct reconcile_context *ctx)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    struct workload_status told = {.pods_ready = readiness(ctx, true)};
    for (int type = 0; type < REPLICA_TYPES; type++) {
        told.reclaimable[type] = reclaimable(ctx, type);
        told.reclaims |= told.reclaimable[type] != workload->reclaimable[type];
    }
    if (told.reclaims || told.pods_ready != READY_ABSENT)
        tell(ctx, &told);
}

/* Kueue tries again at once where the job was not at fault. */
static void tell_held(struct reconcile_context *ctx)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    const char *reason = workload->eviction_reason;
    bool releases = workload->evicted && workload->quota_reserved && !has_pods(ctx);
    struct workload_status told = {.pods_ready = readiness(ctx, false), .releases = releases};
    if (releases) {
        told.requeues = strcmp(reason, "Preempted") == 0 || strcmp(reason, "NodeFailures") == 0;
        told.eviction_reason = reason;
        told.past_execution_s = workload->past_execution_s;
        told.message = workload->message;
    }
    for (int type = 0; type < REPLICA_TYPES; type++)
        told.reclaims |=
            workload->reclaimable[type] != 0 && (releases || !workload->quota_reserved);
    if (told.reclaims || releases || told.pods_ready != READY_ABSENT)
        tell(ctx, &told);
}

static void sync_held(struct reconcile_context *ctx, bool misfit)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    if (ctx->snapshot->options.kueue != KUEUE_SEEN)
        return; /* whether it is there is not known */
    if (workload && (workload->deleting || workload->finished))
        return;
    if (workload && !misfit) {
        if (!update(ctx))
            tell_held(ctx);
    } else if (has_pods(ctx)) {
        return;
    } else if (workload) {
        remove_workload(ctx);
    } else if (!ctx->snapshot->queue.priority_unknown) {
        create(ctx);
    }
}

void policy_queue_sync(struct reconcile_context *ctx, const struct queue_verdict *verdict)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    if (verdict->state == QUEUE_HELD) {
        sync_held(ctx, verdict->misfit);
    } else if (verdict->state == QUEUE_NONE) {
        remove_workload(ctx);
    } else if (workload && !update(ctx)) {
        tell_running(ctx);
    }
}

void policy_queue_release(struct reconcile_context *ctx)
{
    if (!has_pods(ctx))
        remove_workload(ctx);
}

void policy_queue_finish(struct reconcile_context *ctx)
{
    const struct workload *workload = ctx->snapshot->queue.workload;
    if (!workload || workload->finished || workload->deleting)
        return;
    bool succeeded = condition_is_true(&ctx->status, CONDITION_SUCCEEDED);
    const struct condition *end =
        condition_find(&ctx->status, succeeded ? CONDITION_SUCCEEDED : CONDITION_FAILED);
    tell(ctx, &(struct workload_status){.finished_reason = succeeded ? "Succeeded" : "Failed",
                                        .finished_message = end->message});
}
