/* One pass over one job: from what is wanted, seen and remembered to what is to be done. Pure: no
 * I/O, no clock, no random numbers, no JSON, no logging, no memory between passes but the status.
 * Level, not edge: it never asks what has happened, only what is. The same snapshot gives the same
 * plan, byte for byte when printed, and a plan that was carried out in full leads to an empty one
 * (or only a requeue). */
#ifndef SHOAL_OPERATOR_RECONCILE_RECONCILE_H
#define SHOAL_OPERATOR_RECONCILE_RECONCILE_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

/* What the message of condition Failed tells of the failure behind it, up to its end. */
#define RECONCILE_LAST_FAILURE " (last failure: "

/* The plan lives in the arena; strings in it and in its status may be the snapshot's, so it does
 * not outlive the snapshot (job_status_copy keeps a status). Cannot fail. */
struct plan *reconcile(const struct snapshot *snapshot, struct arena *arena);
#endif
