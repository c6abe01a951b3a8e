/* Nodes that a job leaves because their hardware is bad. The agent of a pod there says so when it
 * ends with EXIT_HARDWARE, or others do by a sign on the node (node.h). The node is then avoided
 * for avoid_node_ms: all of the job's pods that were there before (made without an affinity to
 * others) are deleted, and new ones are made with an affinity to other nodes. None of that is a
 * failure, nor is what their peers there report of it. Another end there is one.
 *
 * A pod that runs leaves for a sign alone, so only with care: while more nodes of that kind are
 * spare than replicas of the job want one already, and only AVOID_NODE_LEAVES_UNCOUNTED times in
 * avoid_node_ms. Else it stays, and the operator looks again from time to time.
 *
 * A fault that comes with the job, as of a driver or of its own code, would so walk over the whole
 * cluster. So each leave by an agent's word after the first AVOID_NODE_LEAVES_UNCOUNTED is a
 * failure, until the training comes further than ever before.
 *
 * An end with EXIT_HARDWARE on a node that is avoided already is a failure as any other: that pod
 * can run nowhere else (spec.nodeName), and would end so again and again. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_AVOID_NODE_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_AVOID_NODE_H

#include "operator/reconcile/context.h"

#define AVOID_NODE_LEAVES_UNCOUNTED 4
#define AVOID_NODE_LEAVE_MS         (60 * 1000) /* all within this time are one leave */

/* Forgets what has been avoided for long enough, adds what is bad now with an event about it, and
 * requests a pass for the end of the first. */
void policy_avoid_nodes(struct reconcile_context *ctx);

/* Whether the pod goes because of its node. */
bool policy_leaves_node(const struct history *history, const struct pod *pod);
/* Whether it goes so and its last end comes from there: that one is no failure. */
bool policy_explains_end(const struct history *history, const struct pod *pod);
/* The training came further than ever: what left bad hardware was of use. */
void policy_forgive_hardware(struct history *history);
/* Whether the pod waits for a node and was made when the job avoided other nodes than now: it may
 * come to a bad one, or never to one that is good again. `avoided`: history_avoided_names(). */
bool policy_waits_for_others(const struct pod *pod, const char *avoided);
#endif
