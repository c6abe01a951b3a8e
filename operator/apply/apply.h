/* Carries a plan out, one action after the other, through a backend that answers at once: processes
 * on this machine. steps.h decides about order and outcomes; executor.h does the same over the
 * Kubernetes API. */
#ifndef SHOAL_OPERATOR_APPLY_APPLY_H
#define SHOAL_OPERATOR_APPLY_APPLY_H

#include "base/error.h"
#include "operator/job/types.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/plan.h"

/* Each function returns 0, or -1 with *err. Arguments live until the call returns. */
struct backend {
    void *context;                  /* first argument of each function */
    struct pod_options pod_options; /* the settings of pods that are not the job's */
    int (*set_status)(void *context, const struct job *job, const struct job_status *status,
                      struct error *err);
    /* ERR_EXISTS if the name is taken: no failure; the next pass finds out by whom. */
    int (*create_pod)(void *context, const struct pod_spec *spec, struct error *err);
    int (*create_service)(void *context, const struct service_spec *spec, struct error *err);
    /* Deletes the object with this name and UID. ERR_NOT_FOUND if it is gone: no failure. */
    int (*delete_pod)(void *context, const struct job *job, const char *name, const char *uid,
                      struct error *err);
    int (*delete_service)(void *context, const struct job *job, const char *name, const char *uid,
                          struct error *err);
    int (*delete_job)(void *context, const struct job *job, struct error *err);
    /* Records an event. Cannot fail: losing one is no failure. */
    void (*event)(void *context, const struct job *job, enum event_type type, const char *reason,
                  const char *message);
};

/* Carries the plan out and stops at the first action that fails. `status` is the one that the plan
 * was made from; pods are created with the plan's own if it has one. *ret_requeue_ms is always set:
 * when the plan asks for the next reconcile pass (wall clock), or 0. */
int apply(const struct plan *plan, const struct job *job, const struct job_status *status,
          const struct backend *backend, int64_t *ret_requeue_ms, struct error *err);
#endif
