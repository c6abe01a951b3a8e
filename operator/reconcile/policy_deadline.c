#include "operator/reconcile/policy_deadline.h"

#include "operator/job/condition.h"

static int64_t later(int64_t from_ms, struct optional seconds)
{
    /* The limits are of the user: a number of seconds beyond the range of the clock means never,
     * and does not wrap around to the past. */
    int64_t ms, then_ms;
    if (!seconds.set || __builtin_mul_overflow(seconds.value, 1000, &ms) ||
        __builtin_add_overflow(from_ms, ms, &then_ms))
        return POLICY_NEVER;
    return then_ms;
}

int64_t policy_deadline_ms(const struct job *job, const struct job_status *status)
{
    if (!status->start_ms)
        return POLICY_NEVER;
    return later(status->start_ms, job->run_policy.active_deadline_seconds);
}

/* A status written by another operator may lack completionTime; its condition has a
 * time as well. */
static int64_t finished_ms(const struct job_status *status)
{
    if (status->completion_ms)
        return status->completion_ms;
    const struct condition *failed = condition_find(status, CONDITION_FAILED);
    return failed ? failed->transition_ms
                  : condition_find(status, CONDITION_SUCCEEDED)->transition_ms;
}

int64_t policy_expiry_ms(const struct job *job, const struct job_status *status)
{
    if (!condition_finished(status) || job->run_policy.suspend)
        return POLICY_NEVER;
    return later(finished_ms(status), job->run_policy.ttl_seconds_after_finished);
}
