#include "operator/reconcile/policy_scale_up.h"

bool policy_may_scale_up(const struct job *job, const struct history *history,
                         enum replica_type type)
{
    if (type != REPLICA_WORKER || !job->elastic.present)
        return true;
    for (int32_t i = 0; i < history->completed_count[type]; i++)
        if (history->completed[type][i])
            return false;
    return true;
}
