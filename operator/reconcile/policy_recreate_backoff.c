#include "operator/reconcile/policy_recreate_backoff.h"

#include "operator/reconcile/restart.h"

#define BACKOFF_MIN_MS 10000
#define BACKOFF_MAX_MS 60000

/* Half the age that the job had when the pod was made: where pods end at once, each is made at half
 * as much age again as the one before. */
static int64_t backoff_of(const struct pod *pod, const struct job_status *status)
{
    int64_t backoff_ms = status->start_ms ? (pod->created_ms - status->start_ms) / 2 : 0;
    if (backoff_ms < BACKOFF_MIN_MS)
        return BACKOFF_MIN_MS;
    return backoff_ms < BACKOFF_MAX_MS ? backoff_ms : BACKOFF_MAX_MS;
}

int64_t policy_recreate_at_ms(const struct pod *pod, const struct job_status *status,
                              int64_t now_ms)
{
    if (!pod->created_ms || pod->phase != POD_FAILED || !pod->disrupted || restart_has_run(pod))
        return 0;
    int64_t backoff_ms = backoff_of(pod, status);
    return pod->created_ms - now_ms > backoff_ms ? 0 : pod->created_ms + backoff_ms;
}
