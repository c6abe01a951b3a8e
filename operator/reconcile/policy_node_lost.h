/* When a pod is deleted by force because no kubelet will end it: its node has been lost for too
 * long, or it is past its deletion grace period on a lost node, or with no running container. The
 * pod is then created again, and has not failed. On a healthy node a pod past its grace period may
 * still compute, so the operator waits: two pods must not have the same rank. After a deletion by
 * force a finalizer may keep the pod, and finalizers are not ours to remove. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_NODE_LOST_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_NODE_LOST_H

#include "operator/job/snapshot.h"

/* When to delete the pod by force, on the wall clock; POLICY_NEVER: as things are now, never. */
int64_t policy_force_delete_at_ms(const struct pod *pod, const struct reconcile_options *options);

/* When a pod that is being deleted is overdue, on whatever node; POLICY_NEVER: it is not being
 * deleted, or the option is off. */
int64_t policy_overdue_at_ms(const struct pod *pod, const struct reconcile_options *options);
#endif
