/* The API's words for our enums, and the names of a job's children. These follow from the job
 * alone, so that a second create fails with AlreadyExists. */
#ifndef SHOAL_OPERATOR_JOB_NAMES_H
#define SHOAL_OPERATOR_JOB_NAMES_H

#include "operator/job/types.h"

struct arena;

const char *names_replica_type(enum replica_type type);  /* "Master", "Worker" */
const char *names_replica_label(enum replica_type type); /* "master", "worker" */
const char *names_condition(enum condition_type type);   /* "Created", ... */

/* The name of a replica's pod and service, JOB-TYPE-INDEX, e.g. mnist-worker-2. In the arena. */
const char *names_child(struct arena *arena, const struct job *job, enum replica_type type,
                        int32_t index);
/* Writes that name and its zero: at most the bytes of the job's name and these. */
#define NAMES_CHILD_BYTES sizeof "-worker-2147483647"
void names_put_child(char *at, const struct job *job, enum replica_type type, int32_t index);
/* Whether this is that name. */
bool names_is_child(const char *name, const struct job *job, enum replica_type type, int32_t index);

/* The name of the job's Workload, as Kueue's own integration makes it: pytorchjob-NAME- and five
 * hex digits of a hash of the job's kind, group, name and UID (SHA-1). Two who make one for the
 * same job so meet in one name. In the arena. */
const char *names_workload(struct arena *arena, const struct job *job);

/* The length of the job's name in a child's name; 0: it is no child's name. */
size_t names_child_job(const char *name);

/* Whether this is a DNS label: 1 to NAMES_LABEL_MAX_BYTES lower case letters, digits and '-', with
 * a letter or digit at both ends (RFC 1035, sections 2.3.1 and 2.3.4; RFC 1123, section 2.1).
 * Kubernetes takes it for the names of namespaces; those of services begin with a letter as well
 * ("Object Names and IDs" in its documentation). */
#define NAMES_LABEL_MAX_BYTES 63
bool names_is_label(const char *name);

/* Whether an image is REGISTRY/.../PROGRAM[:TAG][@DIGEST]. image may be NULL. */
bool names_image_is(const char *image, const char *program);
#endif
