/* The rules of a job beyond the types of its fields: the training operator's admission rules, in
 * its words, and rules for what it admits only to fail later. */
#ifndef SHOAL_OPERATOR_JOB_VALIDATE_H
#define SHOAL_OPERATOR_JOB_VALIDATE_H

#include "base/lines.h"
#include "operator/job/types.h"

#define VALIDATE_MAX_REPLICAS 10000 /* of one type */

/* Checks a decoded job that has no defaults yet. Adds each violation to `problems`, as "PATH: KIND:
 * text", and advice to `notes`, which may be NULL. */
void validate_job(const struct job *job, struct lines *problems, struct lines *notes);
#endif
