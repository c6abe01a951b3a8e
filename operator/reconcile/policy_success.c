#include "operator/reconcile/policy_success.h"

bool policy_success(const struct job *job, const struct job_status *status)
{
    enum replica_type decisive =
        job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
    int64_t wanted = job->replicas[decisive].replicas.value;
    if (decisive == REPLICA_WORKER && job->elastic.present)
        wanted = 1;
    return status->replicas[decisive].succeeded >= wanted;
}
