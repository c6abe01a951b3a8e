/* A hang that only a launcher saw: all ranks of its pod were stopped (stopped_ranks.h). To rank 0
 * such a pod looks like one that is away, and it names nobody. The launcher ends those ranks, and
 * leaves word of one with the rank that it starts in that one's place. That one tells rank 0 when
 * the ranks meet anew. So it is told when it is over; and never of a pod that was away. */
#ifndef SHOAL_AGENT_HEALTH_STOPPED_HANG_H
#define SHOAL_AGENT_HEALTH_STOPPED_HANG_H

#include "agent/comm/store.h"
#include "agent/health/rank_table.h"
#include "agent/launch/stopped_note.h"
#include "base/str.h"

struct stopped_hang {
    int rank;                           /* as it was then */
    char time[STOPPED_NOTE_TIME_BYTES]; /* when its launcher ended it; RFC 3339 */
    struct rank_location location;
    struct rank_report report; /* its last; all zero: it had made none */
};

/* Tells what this rank's launcher has left, if anything, and forgets it: once. Before a point that
 * all ranks pass. Of several hangs the one that is told first counts. host, pod: this rank's, which
 * were that one's. */
void stopped_hang_tell(struct store *store, int note_fd, const char *host, const char *pod);
/* On rank 0, behind that point: whether there was one. */
bool stopped_hang_hear(struct store *store, struct stopped_hang *ret_hang);

/* Adds "rank 3 (pod ..., process 812) hung in phase step at step 12; ...". */
void stopped_hang_describe(const struct stopped_hang *hang, struct str *out);
#endif
