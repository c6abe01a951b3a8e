/* What the ranks of a communicator tell each other when a collective is late: how far each has
 * come, so that those who did not reach it can be named. */
#ifndef SHOAL_AGENT_COMM_DESYNC_REPORT_H
#define SHOAL_AGENT_COMM_DESYNC_REPORT_H

#include "agent/comm/flight_recorder.h"
#include "agent/comm/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct desync_report {
    char id[COLLECTIVE_ID_BYTES]; /* of the communicator */
    int rank, size;
    int *world_ranks; /* [size], its own */
    uint64_t queued;  /* collectives so far */
};

struct desync_report desync_report_make(const char *id, int rank, int size, const int *world_ranks,
                                        uint64_t queued);
void desync_report_free(struct desync_report *report);

/* Tells how far this rank has come and adds who has not come as far, ": it was not reached by rank
 * 1, 3"; those who do not say so within wait_ms have no collective that is late. Takes as long. */
void desync_report_exchange(const struct desync_report *report, struct store *store, int wait_ms,
                            struct str *out);

#ifdef __cplusplus
}
#endif
#endif
