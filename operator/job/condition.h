/* The conditions of a job's status and how they change. The first is Created, the last is the job's
 * state. Once Failed or Succeeded is true nothing changes any more. */
#ifndef SHOAL_OPERATOR_JOB_CONDITION_H
#define SHOAL_OPERATOR_JOB_CONDITION_H

#include "operator/job/types.h"

const struct condition *condition_find(const struct job_status *status, enum condition_type type);
bool condition_is_true(const struct job_status *status, enum condition_type type);
bool condition_finished(const struct job_status *status); /* Succeeded or Failed is true */

/* The job's state: the last condition; NULL before the first pass. */
const struct condition *condition_last(const struct job_status *status);

/* Sets a condition and moves it to the end of the list; reason and message are borrowed. Does
 * nothing if it has this value and reason already, or if the job is finished. Keeps
 * lastTransitionTime if only the reason changes. As in the training operator, Running and
 * Restarting replace each other, and Succeeded and Failed set Running to False in place. Returns
 * whether anything changed. */
bool condition_set(struct job_status *status, enum condition_type type, bool value,
                   const char *reason, const char *message, int64_t now_ms);

/* Sets condition Waiting; reason NULL: removes it. It is the last condition, the job's state,
 * unless the job runs anyway: then it follows Created. The times are kept while reason and message
 * are. Returns whether the caller should record an event. */
bool condition_wait(struct job_status *status, const char *reason, const char *message,
                    int64_t now_ms);
#endif
