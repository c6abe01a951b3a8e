#include "operator/job/workload.h"

static bool is_given(const char *text)
{
    return text && *text;
}

struct workload_priority workload_priority_class(const struct job *job)
{
    if (is_given(job->queue.priority_class))
        return (struct workload_priority){PRIORITY_WORKLOAD_CLASS, job->queue.priority_class, 0};
    if (is_given(job->run_policy.scheduling.priority_class))
        return (struct workload_priority){PRIORITY_POD_CLASS,
                                          job->run_policy.scheduling.priority_class, 0};
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present && is_given(job->replicas[type].template_.priority_class))
            return (struct workload_priority){PRIORITY_POD_CLASS,
                                              job->replicas[type].template_.priority_class, 0};
    return (struct workload_priority){PRIORITY_NONE, "", 0};
}
