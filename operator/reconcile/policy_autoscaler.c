#include "operator/reconcile/policy_autoscaler.h"

#include "base/mem.h"

#include <string.h>

static bool is_ours(const struct snapshot *snapshot)
{
    return snapshot->autoscaler && strcmp(snapshot->autoscaler->owner_uid, snapshot->job->uid) == 0;
}

/* The API server completes and converts the metrics, so ours never equal the stored ones. The
 * annotation shows what we wrote. */
static bool spec_equal(const struct autoscaler_spec *a, const struct autoscaler_spec *b)
{
    return a->min_replicas == b->min_replicas && a->max_replicas == b->max_replicas &&
           strcmp(a->metrics_hash, b->metrics_hash) == 0;
}

static void make(const struct snapshot *snapshot, struct plan *plan)
{
    const struct elastic_policy *elastic = &snapshot->job->elastic;
    struct autoscaler_spec *spec = arena_new(plan->arena, struct autoscaler_spec);
    *spec = (struct autoscaler_spec){.min_replicas = (int32_t)elastic->min_replicas.value,
                                     .max_replicas = (int32_t)elastic->max_replicas.value,
                                     .metrics_hash = elastic->metrics_hash};
    struct action action = {.kind = ACTION_CREATE_AUTOSCALER, .autoscaler = spec};
    action.name = snapshot->job->name;
    if (snapshot->autoscaler) {
        action.kind = ACTION_UPDATE_AUTOSCALER;
        action.uid = snapshot->autoscaler->uid;
    }
    if (!snapshot->autoscaler || !spec_equal(&snapshot->autoscaler->spec, spec))
        plan_add(plan, action);
}

void policy_autoscaler_sync(const struct snapshot *snapshot, struct plan *plan,
                            struct blocker *blocker)
{
    const struct autoscaler *autoscaler = snapshot->autoscaler;
    /* The cluster knows no version of HorizontalPodAutoscaler that we speak. */
    if (!snapshot->options.autoscaling)
        return;
    if (!snapshot->job->elastic.metrics)
        policy_autoscaler_delete(snapshot, plan);
    else if (autoscaler && !is_ours(snapshot))
        blocker_name_taken(blocker, "FailedCreateAutoscaler", "HorizontalPodAutoscaler",
                           autoscaler->name, autoscaler->owner_uid, plan->arena);
    else if (!autoscaler || !autoscaler->deleting)
        make(snapshot, plan);
}

void policy_autoscaler_delete(const struct snapshot *snapshot, struct plan *plan)
{
    if (is_ours(snapshot) && !snapshot->autoscaler->deleting)
        plan_add(plan, (struct action){.kind = ACTION_DELETE_AUTOSCALER,
                                       .name = snapshot->autoscaler->name,
                                       .uid = snapshot->autoscaler->uid});
}
