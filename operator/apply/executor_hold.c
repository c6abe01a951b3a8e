/* What waits: a plan's status write for more of the kind, a pass for pods. */
#include "operator/apply/executor_internal.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"

#include <string.h>

/* Pods that end one after the other are told together then. */
static bool only_tells_of_exits(const struct plan *plan, size_t from)
{
    for (size_t i = from; i < plan->count; i++) {
        const struct action *action = &plan->actions[i];
        bool tells =
            action->kind == ACTION_EVENT && strcmp(action->reason, REASON_EXITED_WITH_CODE) == 0;
        if (!tells && action->kind != ACTION_REQUEUE)
            return false;
    }
    return true;
}

/* Of a job that is not proven, the status is what proves it. Where training is pruned, its news is
 * taken up once in a while only, and is to be tried then. */
static bool may_wait(const struct executor *executor, const struct job_record *record,
                     const struct job_status *before, const struct plan *plan)
{
    return record->proven && !executor_training_is_pruned(executor) && plan->count > 0 &&
           plan->actions[0].kind == ACTION_SET_STATUS && only_tells_of_exits(plan, 1) &&
           job_status_may_wait(before, plan->actions[0].status);
}

int64_t executor_hold_ms(struct executor *executor, const char *key, const char *uid,
                         const struct job_status *before, const struct plan *plan)
{
    struct job_record *record = job_record_find(&executor->records, key, uid);
    if (!record)
        return 0;
    int64_t hold_ms = job_record_hold_ms(record, may_wait(executor, record, before, plan),
                                         executor->options.clocks->steady_ms());
    if (!hold_ms)
        return 0;
    job_record_drop_completed(record);
    if (!history_equal(&before->history, &plan->actions[0].status->history))
        job_record_keep_completed(record, before, plan->actions[0].status);
    return hold_ms;
}

int64_t executor_await_pods_ms(struct executor *executor, const char *key, const char *uid,
                               bool are_behind, bool is_away)
{
    int64_t now_ms = executor->options.clocks->steady_ms();
    struct job_record *record = are_behind ? job_record_take(&executor->records, key, uid)
                                           : job_record_find(&executor->records, key, uid);
    if (!record)
        return 0;
    if (!are_behind)
        record->pods_until_ms = 0;
    else if (!record->pods_until_ms || is_away)
        record->pods_until_ms = now_ms + PODS_AWAITED_MS;
    return record->pods_until_ms > now_ms ? record->pods_until_ms - now_ms : 0;
}

const struct history *executor_unwritten(struct executor *executor, const char *key,
                                         const char *uid, const struct job_status *seen)
{
    struct job_record *record = job_record_find(&executor->records, key, uid);
    return record ? job_record_completed(record, seen) : NULL;
}
