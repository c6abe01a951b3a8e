/* Whether a plan's status write may wait for more of the kind. */
#include "operator/apply/executor_internal.h"
#include "operator/job/job_status.h"

/* Of a job that is not proven, the status is what proves it. Where training is pruned, its news is
 * taken up once in a while only, and is to be tried then. */
static bool may_wait(const struct executor *executor, const struct job_record *record,
                     const struct job_status *before, const struct plan *plan)
{
    return record->proven && !executor_training_is_pruned(executor) && plan->count > 0 &&
           plan->actions[0].kind == ACTION_SET_STATUS &&
           (plan->count == 1 || plan->actions[1].kind == ACTION_REQUEUE) &&
           job_status_may_wait(before, plan->actions[0].status);
}

int64_t executor_hold_ms(struct executor *executor, const char *key, const char *uid,
                         const struct job_status *before, const struct plan *plan)
{
    struct job_record *record = job_record_find(&executor->records, key, uid);
    return record ? job_record_hold_ms(record, may_wait(executor, record, before, plan),
                                       executor->options.clocks->steady_ms())
                  : 0;
}
