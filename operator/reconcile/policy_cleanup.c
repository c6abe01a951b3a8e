#include "operator/reconcile/policy_cleanup.h"

#include "operator/reconcile/children.h"

static bool stays(enum clean_pod_policy policy, bool succeeded, const struct child *pod)
{
    if (policy == CLEAN_ALL)
        return false;
    if (policy == CLEAN_RUNNING)
        return pod->pod->phase == POD_SUCCEEDED || pod->pod->phase == POD_FAILED;
    return !succeeded || pod->pod->phase != POD_PENDING;
}

void policy_cleanup(enum clean_pod_policy policy, bool succeeded, const struct view *view,
                    struct plan *plan)
{
    bool keeps = policy == CLEAN_UNSET || policy == CLEAN_NONE;
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *pod = &view->pods.items[i];
        if (!stays(policy, succeeded, pod))
            children_delete(plan, ACTION_DELETE_POD, pod);
    }
    for (size_t i = 0; i < view->services.count; i++) {
        const struct child *service = &view->services.items[i];
        const struct child *pod = view_find(&view->pods, service->type, service->index);
        if (pod ? !stays(policy, succeeded, pod) : !keeps)
            children_delete(plan, ACTION_DELETE_SERVICE, service);
    }
}
