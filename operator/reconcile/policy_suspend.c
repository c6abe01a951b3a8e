#include "operator/reconcile/policy_suspend.h"

#include "operator/job/condition.h"

bool policy_suspended(const struct job *job, const struct job_status *status,
                      const struct view *view)
{
    if (job->run_policy.suspend)
        return true;
    return condition_is_true(status, CONDITION_SUSPENDED) && view->pods.count > 0;
}
