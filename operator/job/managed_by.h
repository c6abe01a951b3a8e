/* runPolicy.managedBy names the controller of a job. The operator writes nothing to the job of
 * another controller, not even a condition: MultiKueue copies the remote job's status to it. */
#ifndef SHOAL_OPERATOR_JOB_MANAGED_BY_H
#define SHOAL_OPERATOR_JOB_MANAGED_BY_H

#include "operator/job/types.h"

/* False for an empty name, too. */
bool managed_by_us(const struct job *job);
#endif
