/* The list of conditions in a job's status and the rules by which it changes: the first entry is
 * Created, the last is the state the job is in. Once Failed or Succeeded is true nothing changes
 * any more. */
#ifndef SHOAL_OPERATOR_JOB_CONDITION_H
#define SHOAL_OPERATOR_JOB_CONDITION_H

#include "operator/job/types.h"

const struct condition *condition_find(const struct job_status *status, enum condition_type type);
bool condition_is_true(const struct job_status *status, enum condition_type type);
bool condition_finished(const struct job_status *status); /* Succeeded or Failed is true */

/* The state the job is in, for people: the last condition; NULL before the first pass. */
const struct condition *condition_last(const struct job_status *status);

/* Puts `type` to `value` at the end of the list, with reason and message (borrowed). Nothing
 * happens if it has that value for that reason already, or if the job is finished.
 * lastTransitionTime is kept if only the reason changed. Side effects, as tools know them: Running
 * and Restarting replace each other; Succeeded and Failed turn Running to False in place. Returns
 * whether anything changed. */
bool condition_set(struct job_status *status, enum condition_type type, bool value,
                   const char *reason, const char *message, int64_t now_ms);

/* Says what stands in the way of the job, or with reason NULL that nothing does: puts Waiting on
 * the list, or takes it off. It is the state the job is in unless it runs all the same: then it
 * stands behind Created. The times stay while reason and message do. Returns whether there is
 * something to tell that was not told before. */
bool condition_wait(struct job_status *status, const char *reason, const char *message,
                    int64_t now_ms);
#endif
