/* For tests of a job's training: when the job was created, and what its process tells. */
#ifndef SHOAL_TESTS_OPERATOR_RECONCILE_TRAINING_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_RECONCILE_TRAINING_FIXTURE_H

#include "tests/operator/cluster.h"

#define CREATED_MS INT64_C(1767225600000)

/* For cluster_do: its pods are made, and a second ago they began to run. */
#define RUNS "settle; run *; settle; wait 1000; "

/* From now on a process is told of that began so many seconds after the job, and of what it has
 * spent since. One that began later than 500 s went on at step 50. */
void training_fixture_tell(struct cluster *cluster, int64_t began_s, int64_t initialization_s,
                           int64_t steps_s, int64_t step);
#endif
