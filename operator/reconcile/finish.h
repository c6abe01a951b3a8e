/* How a job ends: its last condition, its event, what is deleted with it, and when it goes itself.
 * That it ends is reconcile.c's to decide. */
#ifndef SHOAL_OPERATOR_RECONCILE_FINISH_H
#define SHOAL_OPERATOR_RECONCILE_FINISH_H

#include "operator/reconcile/context.h"

/* The job has succeeded. */
void finish_succeeded(struct reconcile_context *ctx);
/* It has failed with this pod, which is not made again. */
void finish_failed(struct reconcile_context *ctx, const struct pod *pod);
/* It has failed as often as it may; last_failure: the last pod that did, NULL: not now. */
void finish_by_limit(struct reconcile_context *ctx, const struct pod *last_failure);
/* It was active longer than activeDeadlineSeconds. */
void finish_by_deadline(struct reconcile_context *ctx);

/* A pass over a job that has ended: it is cleaned up, and deleted when its
 * ttlSecondsAfterFinished are over. */
void finish_go_on(struct reconcile_context *ctx);

/* Deletes the PodGroup and the HorizontalPodAutoscaler of a job that needs no pods any more. */
void finish_delete_podgroup_hpa(struct reconcile_context *ctx);
#endif
