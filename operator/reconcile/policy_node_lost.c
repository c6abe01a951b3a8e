#include "operator/reconcile/policy_node_lost.h"

#include "operator/reconcile/policy_deadline.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool has_ended(const struct pod *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

int64_t policy_overdue_at_ms(const struct pod *pod, const struct reconcile_options *options)
{
    if (!pod->deleted_ms || !pod->grace_ms || !options->overdue_ms)
        return POLICY_NEVER;
    return pod->deleted_ms + pod->grace_ms + options->overdue_ms;
}

int64_t policy_force_delete_at_ms(const struct pod *pod, const struct reconcile_options *options)
{
    int64_t lost_ms = POLICY_NEVER;
    /* Without a grace period it was deleted by force already: what is still there is kept by a
     * finalizer. */
    if (pod->deleted_ms && !pod->grace_ms)
        return lost_ms;
    if (pod->node_lost_ms && !has_ended(pod) && options->node_lost_ms)
        lost_ms = pod->node_lost_ms + options->node_lost_ms;
    if (pod->node_lost_ms || has_ended(pod))
        lost_ms = earlier(lost_ms, policy_overdue_at_ms(pod, options));
    return lost_ms;
}
