#include "operator/policy_lost.h"

#include "operator/policy_deadline.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t policy_lost_ms(const struct pod *pod, const struct reconcile_options *options)
{
    bool ended = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    int64_t lost_ms = POLICY_NEVER;
    if (pod->deleted_ms && !pod->grace_ms)
        return lost_ms;
    if (pod->node_lost_ms && !ended && options->node_lost_ms)
        lost_ms = pod->node_lost_ms + options->node_lost_ms;
    if (pod->deleted_ms && options->overdue_ms)
        lost_ms = earlier(lost_ms, pod->deleted_ms + pod->grace_ms + options->overdue_ms);
    return lost_ms;
}
