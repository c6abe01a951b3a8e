/* How things are called: the words of the API for our enums, and the names of a job's children.
 * Child names follow from the job alone, so creating one twice is seen as "exists already". */
#ifndef SHOAL_OPERATOR_JOB_NAMES_H
#define SHOAL_OPERATOR_JOB_NAMES_H

#include "operator/job/types.h"

struct arena;

const char *names_replica_type(enum replica_type type);  /* "Master", "Worker" */
const char *names_replica_label(enum replica_type type); /* "master", "worker" */
const char *names_condition(enum condition_type type);   /* "Created", ... */

/* JOB-TYPE-INDEX, e.g. mnist-worker-2: the name of a replica's pod and of its service. In the
 * arena. */
const char *names_child(struct arena *arena, const struct job *job, enum replica_type type,
                        int32_t index);

/* How many bytes of a child's name are its job's name; 0: no job has a child of this name. */
size_t names_child_job(const char *name);

/* Whether an image is the one of our program: REGISTRY/.../PROGRAM[:TAG][@DIGEST]. image may be
 * NULL. */
bool names_image_is(const char *image, const char *program);
#endif
