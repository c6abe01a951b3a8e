/* From an action to the one request that does it: method, path, body. Pure: time and the names of
 * events are arguments. Knows no order, no outcomes and no client. */
#ifndef SHOAL_OPERATOR_APPLY_REQUEST_H
#define SHOAL_OPERATOR_APPLY_REQUEST_H

#include "operator/job/types.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct init_template;
struct json_t;

#define REQUEST_PATH_BYTES 1024 /* namespace, name and group are of 253 bytes at most */

/* What the action is about, beyond itself. All is borrowed. */
struct request_source {
    const struct job *job;
    const struct json_t *object;      /* the job as the API has it */
    const struct history *history;    /* pods are built with it */
    const struct pod_options *pod;    /* also says whose pod groups are meant */
    const struct init_template *init; /* NULL: workers do not wait */
    const char *autoscaling_version;  /* "v2", "v2beta2"; NULL: there are no autoscalers */
    uint64_t event_number;            /* ACTION_EVENT: unlike that of any other event of this job */
    int64_t now_ms;                   /* ACTION_EVENT: wall clock */
};

struct request {
    const char *method;
    char path[REQUEST_PATH_BYTES];
    struct json_t *body;      /* owned: json_decref */
    const char *content_type; /* NULL: application/json */
};

/* Never for ACTION_REQUEUE. */
struct request request_build(const struct action *action, const struct request_source *source);

/* Gives our labels to the job's autoscaler that another operator made, so that it is seen: refused
 * (422) if it is not the job's, or has labels already. `action` wanted to create it. */
struct request request_adopt(const struct action *action, const struct request_source *source);

#ifdef __cplusplus
}
#endif
#endif
