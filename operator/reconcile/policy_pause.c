#include "operator/reconcile/policy_pause.h"

#define PAUSE_MIN_MS 10000
#define PAUSE_MAX_MS 60000

/* Half the age that the job had when the pod was made: where pods end at once, each is made at half
 * as much age again as the one before. */
static int64_t pause_of(const struct pod *pod, const struct job_status *status)
{
    int64_t pause_ms = status->start_ms ? (pod->created_ms - status->start_ms) / 2 : 0;
    if (pause_ms < PAUSE_MIN_MS)
        return PAUSE_MIN_MS;
    return pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS;
}

int64_t policy_pause_ms(const struct pod *pod, const struct job_status *status, int64_t now_ms)
{
    if (!pod->created_ms || pod->phase != POD_FAILED || !pod->disrupted)
        return 0;
    int64_t pause_ms = pause_of(pod, status);
    return pod->created_ms - now_ms > pause_ms ? 0 : pod->created_ms + pause_ms;
}
