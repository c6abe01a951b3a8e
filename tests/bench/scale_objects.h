/* The objects of scale_cluster.c as an API server sends them, as JSON: with managedFields, volumes
 * and conditions, of which the operator keeps nothing. The caller frees the texts. */
#ifndef SHOAL_TESTS_BENCH_SCALE_OBJECTS_H
#define SHOAL_TESTS_BENCH_SCALE_OBJECTS_H

#include <stdint.h>

#define SCALE_JOB_UID "7c9e6679-7425-40de-944b-e07fc1f9%04d"

enum scale_state { SCALE_NONE, SCALE_PENDING, SCALE_RUNNING, SCALE_FAILED };

/* status: JSON. */
char *scale_job_text(int job, int64_t version, int pods, const char *status);
/* made: which pod of that name it is. */
char *scale_pod_text(int job, int pod, int made, int64_t version, enum scale_state state);
char *scale_service_text(int job, int pod, int64_t version);
#endif
