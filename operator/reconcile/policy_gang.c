#include "operator/reconcile/policy_gang.h"

#include "base/mem.h"
#include "operator/job/quantity.h"

#include <string.h>

/* ---- what it says ---- */

static int32_t count(const struct job *job, enum replica_type type)
{
    return job->replicas[type].present ? (int32_t)job->replicas[type].replicas.value : 0;
}

static int32_t min_member(const struct job *job)
{
    if (job->run_policy.scheduling.min_available.set)
        return (int32_t)job->run_policy.scheduling.min_available.value;
    int32_t workers = job->elastic.present ? (int32_t)job->elastic.min_replicas.value
                                           : count(job, REPLICA_WORKER);
    return count(job, REPLICA_MASTER) + workers;
}

/* What a scheduler reserves for one pod, as Kubernetes counts it (PodRequests of its component
 * helpers): all containers and sidecars together, and never less than an init container, which runs
 * beside the sidecars that were started before it; and the pod's overhead. */
static struct quantities pod_requests(const struct pod_template *template_, struct arena *arena)
{
    struct quantities sum = {0}, sidecars = {0}, most = {0};
    for (size_t i = 0; i < template_->container_count; i++)
        quantities_add(&sum, &template_->containers[i].requests, 1, arena);
    for (size_t i = 0; i < template_->init_container_count; i++) {
        const struct container *init = &template_->init_containers[i];
        struct quantities beside = {0};
        quantities_add(&beside, &sidecars, 1, arena);
        quantities_add(&beside, &init->requests, 1, arena);
        quantities_raise(&most, &beside, arena);
        if (init->is_sidecar)
            sidecars = beside;
    }
    quantities_add(&sum, &sidecars, 1, arena);
    quantities_raise(&sum, &most, arena);
    quantities_add(&sum, &template_->overhead, 1, arena);
    return sum;
}

static struct quantities min_resources(const struct job *job, int32_t members, struct arena *arena)
{
    struct quantities sum = {0};
    for (int type = 0; type < REPLICA_TYPES; type++) {
        int32_t pods = count(job, type) < members ? count(job, type) : members;
        members -= pods;
        if (pods == 0)
            continue;
        struct quantities each = pod_requests(&job->replicas[type].template_, arena);
        quantities_add(&sum, &each, pods, arena);
    }
    return sum;
}

static const char *queue(const struct snapshot *snapshot)
{
    /* As Kubeflow's training operator does, whose queue is immutable once it is set. */
    if (snapshot->pod_group && *snapshot->pod_group->spec.queue)
        return snapshot->pod_group->spec.queue;
    const char *wanted = snapshot->job->run_policy.scheduling.queue;
    return wanted && *wanted ? wanted : "default";
}

struct pod_group_spec policy_gang_spec(const struct snapshot *snapshot, struct arena *arena)
{
    const struct scheduling_policy *policy = &snapshot->job->run_policy.scheduling;
    struct pod_group_spec spec = {.min_member = min_member(snapshot->job), .queue = ""};
    spec.priority_class = "";
    spec.min_resources = policy->has_min_resources
                             ? policy->min_resources
                             : min_resources(snapshot->job, spec.min_member, arena);
    /* Each scheduler's PodGroup has its own fields: a field that the other one knows would be
     * pruned, and differ from ours at each look. */
    if (snapshot->options.gang.scheduler == GANG_VOLCANO) {
        spec.queue = queue(snapshot);
        spec.priority_class = policy->priority_class ? policy->priority_class : "";
    } else {
        spec.schedule_timeout_s = policy->schedule_timeout_s;
    }
    return spec;
}

static bool spec_equal(const struct pod_group_spec *a, const struct pod_group_spec *b)
{
    return a->min_member == b->min_member &&
           quantities_equal(&a->min_resources, &b->min_resources) &&
           strcmp(a->queue, b->queue) == 0 && strcmp(a->priority_class, b->priority_class) == 0 &&
           a->schedule_timeout_s.set == b->schedule_timeout_s.set &&
           a->schedule_timeout_s.value == b->schedule_timeout_s.value;
}

/* ---- its life ---- */

static bool is_ours(const struct snapshot *snapshot)
{
    return snapshot->pod_group && strcmp(snapshot->pod_group->owner_uid, snapshot->job->uid) == 0;
}

struct blocker policy_gang_blocker(const struct snapshot *snapshot, struct arena *arena)
{
    const struct pod_group *group = snapshot->pod_group;
    const char *name = snapshot->job->name;
    struct blocker blocker = {0};
    if (snapshot->options.gang.scheduler == GANG_NONE)
        return blocker;
    if (group && !is_ours(snapshot))
        blocker_name_taken(&blocker, "FailedCreatePodGroup", "PodGroup", name, group->owner_uid,
                           arena);
    else if (group && group->deleting)
        blocker_set(&blocker, "PodGroupPending",
                    arena_printf(arena, "the previous PodGroup %s is still being deleted", name));
    else if (snapshot->options.gang.scheduler == GANG_VOLCANO && (!group || !*group->phase))
        blocker = (struct blocker){
            .reason = "PodGroupPending",
            .message =
                arena_printf(arena, "PodGroup %s has not been processed by its scheduler", name),
            .expected = true};
    else if (snapshot->options.gang.scheduler == GANG_VOLCANO &&
             strcmp(group->phase, "Pending") == 0)
        blocker_set(&blocker, "PodGroupPending",
                    arena_printf(arena, "PodGroup %s is not admitted yet: %s", name,
                                 group->message ? group->message : "no reason is given"));
    return blocker;
}

void policy_gang_sync(const struct snapshot *snapshot, struct plan *plan)
{
    const struct pod_group *group = snapshot->pod_group;
    if (snapshot->options.gang.scheduler == GANG_NONE || (group && !is_ours(snapshot)) ||
        (group && group->deleting))
        return;
    struct pod_group_spec *spec = arena_new(plan->arena, struct pod_group_spec);
    *spec = policy_gang_spec(snapshot, plan->arena);
    struct action action = {.kind = ACTION_CREATE_POD_GROUP, .pod_group = spec};
    action.name = snapshot->job->name;
    if (group) {
        action.kind = ACTION_UPDATE_POD_GROUP;
        action.uid = group->uid;
    }
    if (!group || !spec_equal(&group->spec, spec))
        plan_add(plan, action);
}

void policy_gang_delete(const struct snapshot *snapshot, struct plan *plan)
{
    const struct pod_group *group = snapshot->pod_group;
    if (!is_ours(snapshot) || group->deleting)
        return;
    plan_add(plan, (struct action){.kind = ACTION_EVENT,
                                   .event_type = EVENT_NORMAL,
                                   .reason = "JobTerminated",
                                   .message = "Job has been terminated. Deleting PodGroup"});
    plan_add(plan, (struct action){
                       .kind = ACTION_DELETE_POD_GROUP, .name = group->name, .uid = group->uid});
}
