/* Which failures count against backoffLimit: one incident counts once. When one rank fails, its
 * peers exit with EXIT_RETRYABLE, by which an agent reports a lost peer; when one pod is asked to
 * stop, all ranks save and exit with EXIT_TERMINATED. If each exit counted, one failed process of
 * four would use up four restarts.
 *
 * The operator sees exits in any order, and the clocks of nodes do not tell which was first. So
 * incidents are numbered. Each replica takes part in each of them once, within ten minutes, the
 * time after which an agent gives its peers up:
 * - An exit with EXIT_RETRYABLE or EXIT_TERMINATED belongs to the incidents that its replica has
 * not taken part in. If there is none, it opens one and counts, as nothing else explains it. An
 * image that uses such a code for its own purposes thus reaches its limit as well, and a collective
 * that timed out counts once.
 * - An exit with any other code opens an incident and counts. The exception is the first one in an
 * incident that was opened by such an exit: it is the cause of that incident.
 * - A pod that is deleted, evicted or lost with its node opens an incident that does not count.
 * With SCOPE_JOB the first failure ends an attempt, and observe counts one at most. */
#ifndef SHOAL_OPERATOR_RECONCILE_INCIDENT_H
#define SHOAL_OPERATOR_RECONCILE_INCIDENT_H

#include "operator/job/types.h"

/* Whether the pod's last exit reports a lost peer, or that one was asked to stop. */
bool incident_lost_peer(const struct pod *pod);

/* The replica has exited `ends` times more. Adds those that belong to no known incident to
 * history->failures and returns their number. */
int32_t incident_count(struct history *history, struct replica_history *replica, int32_t ends,
                       bool lost_peer, int64_t now_ms);

/* The replica's pod is deleted, evicted or lost: no failure. */
void incident_leave(struct history *history, struct replica_history *replica, int64_t now_ms);
#endif
