/* How many GPUs a job asks for. Pure. */
#ifndef SHOAL_OPERATOR_JOB_GPUS_H
#define SHOAL_OPERATOR_JOB_GPUS_H

#include "operator/job/types.h"

/* Of all replicas that the job shall have: nvidia.com/gpu, amd.com/gpu, and parts of one
 * (nvidia.com/mig-1g.10gb), each of which counts as one. Also of an invalid job. */
int64_t gpus_asked(const struct job *job);
#endif
