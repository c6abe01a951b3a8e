/* When a pod is given up that nobody is left to end: its node has been lost for too long, or it is
 * being deleted and long past its grace period on a lost node, or with nothing in it that runs. It
 * is then deleted by force and made again; it has not failed. On a node that is well a pod that
 * does not end may still compute: it is waited for, or two would have one rank. A pod deleted by
 * force stays only for a finalizer, and that is not ours to break. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_NODE_LOST_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_NODE_LOST_H

#include "operator/job/snapshot.h"

/* The moment on the wall clock; POLICY_NEVER as things stand. */
int64_t policy_force_delete_at_ms(const struct pod *pod, const struct reconcile_options *options);

/* When a pod that is being deleted should be gone, on whatever node; POLICY_NEVER: it is not being
 * deleted, or that is not asked. */
int64_t policy_overdue_at_ms(const struct pod *pod, const struct reconcile_options *options);
#endif
