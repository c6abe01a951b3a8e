/* From types to JSON: the other direction of decode, for what the operator writes. Each function
 * gives a whole new value that the caller owns (json_free) and that shares nothing with its
 * sources. Knows no paths and no requests (request). */
#ifndef SHOAL_OPERATOR_MANIFEST_MANIFEST_H
#define SHOAL_OPERATOR_MANIFEST_MANIFEST_H

#include "operator/job/types.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

struct json;

/* The value of `.status`, which decode_status reads back. Counters that are 0 are left out, as
 * tools know it. Times are written in whole seconds. So whoever stores a status this way passes
 * whole seconds to reconcile; otherwise each pass would find its status changed. */
struct json *manifest_status(const struct job *job, const struct job_status *status);

/* Of it `training`; NULL: nothing is known. */
struct json *manifest_training(const struct job_status *status);

/* What is put to the job's subresource `status`. `object` is the job as the API server sent it: its
 * resourceVersion makes the write fail with a conflict if the job has changed since, its UID if it
 * is another job by now. Conditions in it of types that we do not know are written again. */
struct json *manifest_status_update(const struct json *object, const struct job *job,
                                    const struct job_status *status);
/* The same with the status that `object` has: nothing is changed where it is the newest. */
struct json *manifest_status_as_stored(const struct json *object, const struct job *job);

/* Of what is written of this history, the first field that is not in `answer`, the API server's
 * value of `.status.history`: "incidents", "replicas.left". "history" if there is
 * no answer; NULL: nothing is missing. Lives as long as `arena`. */
const char *manifest_lost_history(const struct history *history, const struct json *answer,
                                  struct arena *arena);

/* The same of `.status.training`; "training" if there is no answer. */
const char *manifest_lost_training(const struct job_status *status, const struct json *answer,
                                   struct arena *arena);
/* Whether this is written of it. */
bool manifest_has_training(const struct job_status *status, const char *name);

/* The pod of a job that was decoded from a document: the template as it was written, all of it,
 * with what pod_build adds. `init_containers`: an array to be put behind the user's, or NULL; an
 * annotation names them unless the one is INIT_CONTAINER_NAME. */
struct json *manifest_pod(const struct job *job, const struct pod_spec *pod,
                          const struct json *init_containers);

/* Headless, and its name resolves before the pod is ready: ranks meet while they start. An API
 * server refuses a service with two ports of one number and protocol: we keep one, the rendezvous
 * port if it is among them. Of several ports it refuses one without a name, and two of one name: we
 * name them. */
struct json *manifest_service(const struct job *job, const struct service_spec *service);

/* For the scheduler of `gang`, which is not GANG_NONE. */
struct json *manifest_pod_group(const struct job *job, const struct pod_group_spec *group,
                                enum gang_scheduler gang);

/* version: of the group autoscaling, "v2" or "v2beta2"; they agree in all that is written here. */
struct json *manifest_autoscaler(const struct job *job, const struct autoscaler_spec *autoscaler,
                                 const char *version);

/* The job's Workload for Kueue. version: of the group kueue.x-k8s.io, "v1beta2" or "v1beta1". The
 * topology request of a pod set is that of the template's annotations (ANNOTATION_TOPOLOGY). */
struct json *manifest_workload(const struct job *job, const char *name,
                               const struct workload_spec *spec, const char *version);
/* Merge patches of the Workload with this UID in this resourceVersion, else a conflict: its queue
 * and priority; of its status what we write, the conditions of others as they were. */
struct json *manifest_workload_update(const struct workload_spec *spec, const char *uid,
                                      const char *resource_version, const char *version);
struct json *manifest_workload_status(const struct workload_status *status, const char *uid,
                                      const char *resource_version, const char *version,
                                      int64_t now_ms);

/* An event about the job. `name` must be unique in the namespace. */
struct json *manifest_event(const struct job *job, const char *name, enum event_type type,
                            const char *reason, const char *message, int64_t now_ms);

struct manifest_delete {
    const char *uid;     /* only the object with this UID; another one of its name: a conflict */
    const char *version; /* only in this version, likewise; NULL: in any */
    bool at_once;        /* gracePeriodSeconds 0 */
    bool background;     /* what it owns goes after it */
};

/* The body of a DELETE. */
struct json *manifest_delete(const struct manifest_delete *options);
#endif
