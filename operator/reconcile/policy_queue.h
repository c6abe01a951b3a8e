/* Kueue: a job with a queue sleeps until its Workload is admitted, and again when it is evicted.
 * The operator keeps the Workload; the job's spec is never touched. Kueue's job framework
 * (pkg/controller/jobframework) is the model of what is written when.
 *
 * A job is left to Kueue's own integration if a Workload of it is there that we did not make. That
 * one suspends the job in its spec; while the spec says so, no Workload is made here.
 *
 * A Workload's pod sets never change: one that does not fit the job any more is deleted, once no
 * pod is left that uses its quota, and made anew. A job that only shrinks keeps it, and gives quota
 * back (reclaimablePods). */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_QUEUE_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_QUEUE_H

#include "operator/reconcile/context.h"
#include "operator/reconcile/policy_waiting.h"

enum queue_state {
    QUEUE_NONE,    /* the job is in no queue that is ours to follow */
    QUEUE_BLOCKED, /* what Kueue says cannot be followed: pods stay, and none is made */
    QUEUE_HELD,    /* no pods: the job waits, or is evicted */
    QUEUE_ADMITTED,
};

struct queue_verdict {
    enum queue_state state;
    struct blocker blocker; /* why, with QUEUE_BLOCKED and QUEUE_HELD */
    bool misfit;            /* the Workload is to be replaced */
};

struct queue_verdict policy_queue(const struct snapshot *snapshot, struct arena *arena);

/* The job with as many workers as were admitted; the snapshot's own if that is all of them. */
const struct job *policy_queue_job(const struct snapshot *snapshot, struct arena *arena);

/* What the pods of this type get from the admission; NULL: nothing. */
const struct placement *policy_queue_placement(const struct snapshot *snapshot,
                                               enum replica_type type, struct arena *arena);

/* Plans what the Workload of an unfinished job needs: to be made, replaced, told. Call it when the
 * status has its counts. */
void policy_queue_sync(struct reconcile_context *ctx, const struct queue_verdict *verdict);

/* Plans its deletion once no pod is left: the job is suspended in its spec. */
void policy_queue_release(struct reconcile_context *ctx);

/* Tells it that the job has finished. */
void policy_queue_finish(struct reconcile_context *ctx);
#endif
