#include "operator/reconcile/policy_cleanup.h"

#include "operator/job/history.h"
#include "operator/reconcile/children.h"

/* Where a watch of pods, late after a start, does not show an end yet, the delete finds out: the
 * pod has another version then. What the status says of its replica may be of a pod before it. */
static bool stays(enum clean_pod_policy policy, bool succeeded, const struct child *pod)
{
    if (policy == CLEAN_ALL)
        return false;
    if (policy == CLEAN_RUNNING)
        return pod->pod->phase == POD_SUCCEEDED || pod->pod->phase == POD_FAILED;
    return !succeeded || pod->pod->phase != POD_PENDING;
}

/* A service goes behind its pod, which may have ended unseen. Where pods are kept, one that had not
 * begun when the job succeeded has gone. */
static bool service_stays(enum clean_pod_policy policy, bool succeeded, const struct child *service,
                          const struct child *pod, const struct history *history)
{
    if (policy == CLEAN_ALL)
        return false;
    if (pod)
        return !pod->deleting || stays(policy, succeeded, pod);
    bool keeps = policy == CLEAN_UNSET || policy == CLEAN_NONE;
    return keeps && (!succeeded || !history->known ||
                     history_is_complete(history, service->type, service->index));
}

void policy_cleanup(enum clean_pod_policy policy, bool succeeded, const struct history *history,
                    const struct view *view, struct plan *plan)
{
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *pod = &view->pods.items[i];
        if (stays(policy, succeeded, pod))
            continue;
        if (policy == CLEAN_ALL)
            children_delete(plan, ACTION_DELETE_POD, pod);
        else
            children_delete_as_seen(plan, pod);
    }
    for (size_t i = 0; i < view->services.count; i++) {
        const struct child *service = &view->services.items[i];
        const struct child *pod = view_find(&view->pods, service->type, service->index);
        if (!service_stays(policy, succeeded, service, pod, history))
            children_delete(plan, ACTION_DELETE_SERVICE, service);
    }
}
