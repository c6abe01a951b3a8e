#include "operator/reconcile/children.h"

#include "base/mem.h"
#include "operator/job/history.h"
#include "operator/job/names.h"
#include "operator/reconcile/policy_avoid_node.h"
#include "operator/reconcile/policy_preempt.h"
#include "operator/reconcile/policy_queue.h"
#include "operator/reconcile/policy_scale_up.h"
#include "operator/reconcile/restart.h"

bool children_desired(const struct job *job, const struct child *child)
{
    const struct replica_spec *replica = &job->replicas[child->type];
    return replica->present && child->index < replica->replicas.value && !child->surplus;
}

bool children_is_old_attempt(const struct job *job, const struct history *history,
                             const struct pod *pod)
{
    return job->run_policy.restart_scope == SCOPE_JOB && pod->attempt < history->attempt;
}

static void add_force_delete_event(struct plan *plan, const struct child *child)
{
    bool node_lost = child->pod->node_lost_ms != 0;
    const char *why =
        node_lost ? "its node is lost" : "it has terminated and is past its grace period";
    plan_add(plan,
             (struct action){.kind = ACTION_EVENT,
                             .event_type = EVENT_WARNING,
                             .reason = node_lost ? "PodLost" : "PodForceDeleted",
                             .message = arena_printf(plan->arena, "Pod %s is deleted by force: %s",
                                                     child->name, why)});
}

/* version: in which alone; NULL: whatever it is by now. */
static void delete_child(struct plan *plan, enum action_kind kind, const struct child *child,
                         const char *version)
{
    if (child->lost) {
        kind = ACTION_FORCE_DELETE_POD;
        version = child->pod->version;
        add_force_delete_event(plan, child);
    }
    /* A second DELETE of what is being deleted would do nothing, unless it takes the grace period
     * away. */
    if (child->lost || !child->deleting)
        plan_add(plan,
                 (struct action){
                     .kind = kind, .name = child->name, .uid = child->uid, .version = version});
}

void children_delete(struct plan *plan, enum action_kind kind, const struct child *child)
{
    delete_child(plan, kind, child, NULL);
}

void children_delete_as_seen(struct plan *plan, const struct child *pod)
{
    delete_child(plan, ACTION_DELETE_POD, pod, pod->pod->version);
}

void children_delete_all(struct plan *plan, const struct view *view)
{
    for (size_t i = 0; i < view->pods.count; i++)
        children_delete(plan, ACTION_DELETE_POD, &view->pods.items[i]);
    for (size_t i = 0; i < view->services.count; i++)
        children_delete(plan, ACTION_DELETE_SERVICE, &view->services.items[i]);
}

/* A pod that the system ended is gone before anybody looks. */
static void add_disrupted_event(struct plan *plan, const struct pod *pod)
{
    if (!pod->disrupted || pod->deleted_ms || !pod->waiting_reason)
        return;
    plan_add(plan, (struct action){
                       .kind = ACTION_EVENT,
                       .event_type = EVENT_WARNING,
                       .reason = REASON_POD_DISRUPTED,
                       .message = arena_printf(
                           plan->arena, "Pod %s did not fail, the system terminated it: %s%s%s",
                           pod->name, pod->waiting_reason, pod->waiting_message ? ": " : "",
                           pod->waiting_message ? pod->waiting_message : ""),
                   });
}

/* Whether a pod makes room for another one: in its place, of the next attempt, or worker 0's. */
static bool makes_room(const struct job *job, const struct history *history,
                       const struct child *child, const char *avoided)
{
    enum restart_policy policy = job->replicas[child->type].restart_policy;
    return !child->backing_off &&
           (child->preempted || children_is_old_attempt(job, history, child->pod) ||
            policy_leaves_node(history, child->pod) ||
            policy_waits_for_others(child->pod, avoided) ||
            restart_judge(policy, child->pod) == RESTART_REPLACE);
}

/* Deletes the pods that must go. Returns whether pods of an old attempt are still there. */
static bool delete_undesired(struct plan *plan, const struct job *job, const struct view *view,
                             const struct history *history)
{
    bool old_attempt = false;
    const char *avoided = history_avoided_names(history, plan->arena);
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *child = &view->pods.items[i];
        bool room = makes_room(job, history, child, avoided);
        if (room && child->pod->phase == POD_FAILED)
            add_disrupted_event(plan, child->pod);
        if (child->preempted && child->pod->phase != POD_FAILED)
            children_delete_as_seen(plan, child); /* it may have succeeded, or got a node */
        else if (room || child->lost || !children_desired(job, child))
            children_delete(plan, ACTION_DELETE_POD, child);
        old_attempt |= children_is_old_attempt(job, history, child->pod);
    }
    for (size_t i = 0; i < view->services.count; i++)
        if (!children_desired(job, &view->services.items[i]))
            children_delete(plan, ACTION_DELETE_SERVICE, &view->services.items[i]);
    return old_attempt;
}

static bool may_create_service(struct plan *plan, const struct snapshot *snapshot,
                               const struct view *view, const char *name, struct blocker *blocker)
{
    const struct service *foreign = view_foreign_service(view, snapshot, name);
    if (foreign && !foreign->deleting) /* else its end brings the next pass */
        blocker_name_taken(blocker, "FailedCreateService", "service", name, foreign->owner_uid,
                           plan->arena);
    return !foreign;
}

static bool may_create_pod(struct plan *plan, const struct snapshot *snapshot,
                           const struct view *view, const char *name, struct blocker *blocker)
{
    const struct pod *foreign = view_foreign_pod(view, snapshot, name);
    if (foreign && !foreign->deleted_ms)
        blocker_name_taken(blocker, "FailedCreatePod", "pod", name, foreign->owner_uid,
                           plan->arena);
    return !foreign;
}

/* Makes what is missing of one type. */
static void create_missing(struct plan *plan, const struct snapshot *snapshot,
                           const struct view *view, const struct history *history,
                           enum replica_type type, bool pods, struct blocker *blocker)
{
    const struct replica_spec *replica = &snapshot->job->replicas[type];
    bool may_scale_up = policy_may_scale_up(snapshot->job, history, type);
    const struct placement *placement = policy_queue_placement(snapshot, type, plan->arena);
    /* Pods follow all services in a plan: added in turn, each service would move all pods. */
    struct action *pod_actions = NULL;
    size_t pod_count = 0, pod_at = 0, service_at = 0;
    for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
        bool there = view_next(&view->pods, type, i, &pod_at) != NULL;
        bool pod = pods && !there && !history_is_complete(history, type, i);
        bool service = !view_next(&view->services, type, i, &service_at);
        bool may_be_made = may_scale_up && !policy_is_kept_out(view, history, type, i);
        if ((!pod && !service) || (!there && !may_be_made))
            continue;
        struct action action = {.kind = ACTION_CREATE_SERVICE,
                                .name = names_child(plan->arena, snapshot->job, type, i),
                                .type = type,
                                .index = i,
                                .attempt = history->attempt,
                                .placement = placement};
        if (service && may_create_service(plan, snapshot, view, action.name, blocker))
            plan_add(plan, action);
        if (!pod || !may_create_pod(plan, snapshot, view, action.name, blocker))
            continue;
        if (!pod_actions)
            pod_actions =
                arena_array(plan->arena, struct action, (size_t)(replica->replicas.value - i));
        action.kind = ACTION_CREATE_POD;
        pod_actions[pod_count++] = action;
    }
    for (size_t i = 0; i < pod_count; i++)
        plan_add(plan, pod_actions[i]);
}

void children_sync(struct plan *plan, const struct snapshot *snapshot, const struct view *view,
                   const struct history *history, struct blocker *blocker)
{
    bool old_attempt = delete_undesired(plan, snapshot->job, view, history);
    if (blocker->reason)
        return;
    /* While a pod of the old attempt lives, no pod of the new one is made: the two would meet in
     * one rendezvous. */
    for (int type = 0; type < REPLICA_TYPES; type++)
        create_missing(plan, snapshot, view, history, type, !old_attempt, blocker);
}
