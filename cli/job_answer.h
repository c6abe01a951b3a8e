/* A job of this machine as an API server would show it: part of what `shoal run` answers
 * (run_answer.h). Pure. */
#ifndef SHOAL_CLI_JOB_ANSWER_H
#define SHOAL_CLI_JOB_ANSWER_H

#include "operator/job/types.h"

struct json;

/* The PyTorchJob, with as much of its spec as job_facts_read reads; the caller owns it. */
struct json *job_answer(const struct job *job, const struct job_status *status);
#endif
