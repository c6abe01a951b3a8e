/* API objects for tests, as small as an API server would ever send them. The caller owns what is
 * returned. */
#ifndef SHOAL_TESTS_OPERATOR_CACHE_OBJECTS_H
#define SHOAL_TESTS_OPERATOR_CACHE_OBJECTS_H

#include "operator/job/types.h"

struct json;

/* From YAML; fails the test if it is none. */
struct json *object_from(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In namespace "ns". A job with one master and `workers` workers. */
struct json *object_job(const char *name, const char *uid, int version, int workers);
/* NAME is JOB-TYPE-INDEX; labelled so, and controlled by the job of that UID. */
struct json *object_pod(const char *name, const char *uid, const char *owner_uid, int version,
                        const char *phase);
struct json *object_service(const char *name, const char *uid, const char *owner_uid, int version);

/* The API's word for it: "Pending", ... */
const char *object_phase(enum pod_phase phase);
#endif
