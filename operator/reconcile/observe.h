/* What the pods tell: completions and failures are recorded in the history, each once, and the
 * counters of the status follow. Part of a pass. */
#ifndef SHOAL_OPERATOR_RECONCILE_OBSERVE_H
#define SHOAL_OPERATOR_RECONCILE_OBSERVE_H

#include "operator/reconcile/context.h"

/* What the pods of the current attempt tell that was not known before. */
struct pod_changes {
    int32_t failures; /* ends that were not seen so far, whether they count or not */
    enum replica_type failed_type;
    const struct pod *last_failure; /* the last failure that counts; NULL: none */
    bool restart_all;               /* with SCOPE_JOB: this attempt cannot go on */
    const struct pod *fatal;        /* its failure fails the job; NULL: none */
};

/* Records completions and failures of the current attempt. */
struct pod_changes observe(struct reconcile_context *ctx);

/* Records completions only; what has failed is left to be judged later. */
void observe_completions(struct reconcile_context *ctx);

/* The job is under way: its counters follow the pods. A pod that is lost or being deleted is not
 * active any more. */
void observe_count(struct reconcile_context *ctx);

/* How pods of this type go of which none has failed: "are being deleted"; NULL if one has failed,
 * or none goes. */
const char *observe_leaving(const struct reconcile_context *ctx, enum replica_type type);

/* The job is suspended or finished: what was reached stays or grows, and what still holds its
 * devices is told as active, so that nobody gives them to others too early: while it is suspended
 * (Kueue then frees its quota at 0) every pod that has not ended, after its end those that run. Of
 * a finished job a replica type of which the status says nothing gets no entry for nothing: jobs
 * that another operator finished are left as they are. */
void observe_rest(struct reconcile_context *ctx);
#endif
