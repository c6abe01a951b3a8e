/* What a job asks of Kueue, by labels: https://kueue.sigs.k8s.io, "Run a PyTorchJob". Only read
 * where the operator itself speaks to Kueue (--kueue). */
#ifndef SHOAL_OPERATOR_JOB_QUEUE_H
#define SHOAL_OPERATOR_JOB_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct queue_wish {
    const char *name;           /* LABEL_QUEUE: the LocalQueue; NULL: the job is in no queue */
    const char *priority_class; /* LABEL_QUEUE_PRIORITY: a WorkloadPriorityClass; NULL: none */
    int64_t max_execution_s;    /* LABEL_QUEUE_MAX_EXECUTION; 0: no limit */
    bool prebuilt;              /* LABEL_QUEUE_PREBUILT: Kueue's own integration has its Workload */
    const char *templates_hash; /* of the pod templates, to compare them; NULL without a name */
};
#endif
