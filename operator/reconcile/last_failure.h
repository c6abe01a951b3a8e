/* Whose failure was the last, for the message of a job that fails by them: its pod may be gone
 * before anybody looks. That the job fails is reconcile.c's to decide. The texts begin with
 * RECONCILE_LAST_FAILURE and live in the context's arena. */
#ifndef SHOAL_OPERATOR_RECONCILE_LAST_FAILURE_H
#define SHOAL_OPERATOR_RECONCILE_LAST_FAILURE_H

#include "operator/reconcile/context.h"

/* This pod's, as far as its end is known. */
const char *last_failure_of_pod(struct reconcile_context *ctx, const struct pod *pod);

/* By what the status remembers of failures that were told before, as an edit of backoffLimit comes
 * after them. The latest incident counts; within it, who failed by itself rather than who lost a
 * peer. "": that does not say whose it was. */
const char *last_failure_remembered(struct reconcile_context *ctx);
#endif
