/* What counts against backoffLimit: one incident, one count. A rank that goes takes its peers with
 * it: they leave with EXIT_RETRYABLE, by which an agent says that a peer was lost. Counted each by
 * itself, one dead process of four would cost four restarts, and six restarts be one and a half
 * incidents.
 *
 * Ends are seen in any order, and nodes' clocks do not say which was first. So incidents are
 * numbered, and each replica has a part in each of them once, if it comes within ten minutes, in
 * which an agent gives its peers up:
 *   - An end with EXIT_RETRYABLE is part of the incidents that its replica has had no part in yet.
 *     If there is none it opens one and counts: nothing else explains it. So an image that uses the
 *     code for reasons of its own reaches its limit as well.
 *   - An end with any other code opens an incident and counts, but for the first that comes to an
 *     incident that only EXIT_RETRYABLE has opened: that is its cause.
 *   - A pod that is deleted, evicted or lost with its node opens an incident that counts nothing.
 * With SCOPE_JOB an attempt ends with its first failure, and observe counts no more than one. */
#ifndef SHOAL_OPERATOR_RECONCILE_INCIDENT_H
#define SHOAL_OPERATOR_RECONCILE_INCIDENT_H

#include "operator/job/types.h"

/* Whether the pod's last end says that a peer was lost. */
bool incident_lost_peer(const struct pod *pod);

/* The replica has ended `ends` times more. Counts in history->failures what is no part of incidents
 * known already, and returns how many that are. */
int32_t incident_count(struct history *history, struct replica_history *replica, int32_t ends,
                       bool lost_peer, int64_t now_ms);

/* The replica's pod goes, by nobody's failure. */
void incident_leave(struct history *history, struct replica_history *replica, int64_t now_ms);
#endif
