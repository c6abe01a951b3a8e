/* The defaults of absent fields. Applied in memory, never written back. */
#ifndef SHOAL_OPERATOR_JOB_DEFAULTS_H
#define SHOAL_OPERATOR_JOB_DEFAULTS_H

#include "operator/job/types.h"

struct arena;

/* cleanPodPolicy None, restartScope Replica, replicas 1, restartPolicy OnFailure, the rendezvous
 * port, a grace period of 30 s, elastic bounds, nprocPerNode auto, backoffLimit as given (-1:
 * unlimited). Sets each field that has a default. The job must be valid. */
void defaults_apply(struct job *job, int64_t default_backoff_limit, struct arena *arena);
#endif
