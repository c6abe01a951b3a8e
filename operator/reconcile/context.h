/* The state of one reconcile pass, shared by reconcile.c and the files that it is made of. */
#ifndef SHOAL_OPERATOR_RECONCILE_CONTEXT_H
#define SHOAL_OPERATOR_RECONCILE_CONTEXT_H

#include "base/mem.h"
#include "operator/job/snapshot.h"
#include "operator/reconcile/exits.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/view.h"

struct reconcile_context {
    const struct snapshot *snapshot;
    const struct job *job;
    struct arena *arena;
    struct plan *plan;
    struct view view;
    struct job_status status;    /* the new status */
    struct exits exits;          /* that this pass has seen and not told yet */
    const struct training *told; /* the snapshot's, until it is taken over */
    const char *avoided;         /* history_avoided_names, from policy_avoid_nodes on */
    bool starts;                 /* the job does, or is resumed: it has all its time before it */
    int64_t requeue_ms;          /* the earliest requested requeue; POLICY_NEVER: none */
};

#define context_text(ctx, ...) arena_printf((ctx)->arena, __VA_ARGS__)

struct reconcile_context context_open(const struct snapshot *snapshot, struct arena *arena);

void context_event(struct reconcile_context *ctx, enum event_type type, const char *reason,
                   const char *message);
/* condition_set on the new status. */
bool context_condition(struct reconcile_context *ctx, enum condition_type type, bool value,
                       const char *reason, const char *message);
/* Requests another pass; the earliest request counts. */
void context_requeue(struct reconcile_context *ctx, int64_t at_ms);
/* Adds the status to the plan if it has changed, and the requeue. Call it once, at the end. */
void context_publish(struct reconcile_context *ctx);
#endif
