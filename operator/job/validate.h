/* What a job must satisfy beyond the form of its fields: the peer operator's admission rules, word
 * for word where tools may look, and what it lets through only to fail later. */
#ifndef SHOAL_OPERATOR_JOB_VALIDATE_H
#define SHOAL_OPERATOR_JOB_VALIDATE_H

#include "base/lines.h"
#include "operator/job/types.h"

#define VALIDATE_MAX_REPLICAS 10000 /* of one type */

/* Checks a decoded job that has no defaults yet. Adds every violation to `problems`, "PATH: KIND:
 * text", and advice that is no error to `notes` (may be NULL). */
void validate_job(const struct job *job, struct lines *problems, struct lines *notes);
#endif
