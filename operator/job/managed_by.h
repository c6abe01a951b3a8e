/* Whose job it is: runPolicy.managedBy names the controller that looks after it. Of another's job
 * we write nothing, not even a condition: that controller copies the status of the real run to it
 * (MultiKueue). */
#ifndef SHOAL_OPERATOR_JOB_MANAGED_BY_H
#define SHOAL_OPERATOR_JOB_MANAGED_BY_H

#include "operator/job/types.h"

/* An empty name is another's too. */
bool managed_by_us(const struct job *job);
#endif
