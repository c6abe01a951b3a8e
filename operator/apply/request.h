/* The HTTP request of an action: method, path, body. Pure: time and the names of events are
 * arguments. Knows nothing of order, outcomes and the client. */
#ifndef SHOAL_OPERATOR_APPLY_REQUEST_H
#define SHOAL_OPERATOR_APPLY_REQUEST_H

#include "operator/job/types.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

struct init_template;
struct json;

#define REQUEST_PATH_BYTES 1024 /* namespace, name and group have 253 bytes at most */

/* What a request needs beside the action. All is borrowed. */
struct request_source {
    const struct job *job;
    const struct json *object;        /* the job as the API server sent it */
    const struct history *history;    /* that pods are created with */
    const struct pod_options *pod;    /* also says which gang scheduler's PodGroups */
    const struct init_template *init; /* NULL: workers get no init container */
    const char *autoscaling_version;  /* "v2", "v2beta2"; NULL: there are no autoscalers */
    const char *kueue_version;        /* "v1beta2", "v1beta1"; NULL: there are no Workloads */
    bool stored_invalid;              /* ACTION_SET_STATUS: not to be written as stored */
    uint64_t event_number;            /* ACTION_EVENT: unique among the events of this job */
    int64_t now_ms;                   /* ACTION_EVENT, ACTION_SET_WORKLOAD_STATUS: wall clock */
};

struct request {
    const char *method;
    char path[REQUEST_PATH_BYTES];
    struct json *body;        /* owned: json_free */
    const char *content_type; /* NULL: application/json */
};

/* Not for ACTION_REQUEUE. */
struct request request_build(const struct action *action, const struct request_source *source);

/* The requests that put our labels on an existing PodGroup or autoscaler of the job, so that our
 * watch finds it: the first where it has no labels yet, the second among those it has. `action`
 * failed to create it. The API server answers 422 if it is not the job's by its first owner, or the
 * labels are not as the request takes them to be. */
struct request request_adopt(const struct action *action, const struct request_source *source);
struct request request_adopt_labelled(const struct action *action,
                                      const struct request_source *source);

/* The request that looks whose the pod or service is that was in the way of `action`, a create. It
 * is a list of that one name: list is a verb that the operator has for its watch, get is not. */
struct request request_find(const struct action *action, const struct request_source *source);
/* What `action` was to make, in the answer to that. It is controlled by the job and bears the
 * labels of its place, so that our watch shows it; a pod is of the action's attempt. NULL: there is
 * no such object, or it is another's. Borrowed from `answer`. */
const struct json *request_found(const struct json *answer, const struct action *action,
                                 const struct job *job);
#endif
