/* Reads the pods of the snapshot: records completions and failures in the history, each once, and
 * updates the counters of the status. */
#ifndef SHOAL_OPERATOR_RECONCILE_OBSERVE_H
#define SHOAL_OPERATOR_RECONCILE_OBSERVE_H

#include "operator/reconcile/context.h"

/* What has happened to the pods of the current attempt since the last pass. */
struct pod_changes {
    int32_t failures; /* new exits, whether they count against backoffLimit or not */
    enum replica_type failed_type;
    const struct pod *last_failure; /* the last new failure that counts; NULL: none */
    bool restart_all; /* with SCOPE_JOB: this attempt has failed, and all replicas must restart */
    const struct pod *fatal; /* the pod whose failure fails the job; NULL: none */
};

/* Records completions and failures of the current attempt. */
struct pod_changes observe(struct reconcile_context *ctx);

/* Records completions only, and leaves failures to a later pass. */
void observe_completions(struct reconcile_context *ctx);

/* Sets the counters of an unfinished job. Lost pods and those being deleted are not active. */
void observe_count(struct reconcile_context *ctx);

/* Why pods of this type are leaving, if none of them has failed, e.g. "are being deleted". NULL:
 * one has failed, or none is leaving. */
const char *observe_leaving(const struct reconcile_context *ctx, enum replica_type type);

/* Sets the counters of a suspended or finished job. `succeeded` never decreases. `active` counts
 * the pods that still hold devices, so that nobody reuses these too early: while the job is
 * suspended all pods that have not ended (Kueue frees its quota at 0), after its end those that
 * run. A finished job gets no entry for a replica type that its status lacks: jobs that another
 * operator finished are not changed. */
void observe_inactive(struct reconcile_context *ctx);
#endif
