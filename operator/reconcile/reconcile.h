/* Reconciles one job: from its spec, the observed children and its status to a plan. Pure: no I/O,
 * no clock, no random numbers, no JSON, no logging, no state but the status. Level-triggered: it
 * depends on the current state and never on events. Equal snapshots give plans that print equal
 * bytes. A plan that was carried out in full leads to an empty plan, or to a requeue. */
#ifndef SHOAL_OPERATOR_RECONCILE_RECONCILE_H
#define SHOAL_OPERATOR_RECONCILE_RECONCILE_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

/* Begins the part of condition Failed's message that describes the last failure. */
#define RECONCILE_LAST_FAILURE " (last failure: "

/* The plan lives in the arena. It and its status point into the snapshot, so it must not outlive
 * the snapshot (job_status_copy keeps a status). Cannot fail. */
struct plan *reconcile(const struct snapshot *snapshot, struct arena *arena);
#endif
