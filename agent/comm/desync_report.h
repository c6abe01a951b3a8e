/* The desync report: when a collective is late, its ranks exchange how many collectives they have
 * queued. Each rank then names those that did not reach it. */
#ifndef SHOAL_AGENT_COMM_DESYNC_REPORT_H
#define SHOAL_AGENT_COMM_DESYNC_REPORT_H

#include "agent/comm/flight_recorder.h"
#include "agent/comm/store.h"

struct desync_report {
    char id[COLLECTIVE_ID_BYTES]; /* of the communicator */
    int rank, size;
    int *world_ranks; /* [size]; owned */
    uint64_t queued;  /* collectives so far */
};

struct desync_report desync_report_make(const char *id, int rank, int size, const int *world_ranks,
                                        uint64_t queued);
void desync_report_free(struct desync_report *report);

/* Publishes this rank's count and adds to *out the ranks with a smaller one: ": it was not reached
 * by rank 1, 3". A rank that publishes nothing within wait_ms has no late collective, so it counts
 * as one of them. Blocks up to wait_ms. */
void desync_report_exchange(const struct desync_report *report, struct store *store, int wait_ms,
                            struct str *out);
#endif
