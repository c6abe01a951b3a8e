/* What ranks tell rank 0 with their heartbeats, and what rank 0 asks of them in return. The
 * rendezvous carries the texts and does not read them. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_HEALTH_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_HEALTH_H

#include "agent/comm/store.h"

#include <stdbool.h>

/* Rank 0 asks a rank what it does. If that may be unable to answer, another rank of its pod is to
 * look at it from outside. */
struct rendezvous_inspection {
    int rank;
    int witness; /* that other rank; -1: none is asked */
    int pid;     /* the rank's, in its pod */
    bool ends;   /* it is to be ended, then: to all others the rank is lost */
    char why[STORE_VALUE_MAX];
};

/* All functions are called by threads of the rendezvous, and do not block for long. */
struct rendezvous_health {
    void *ctx;
    /* In every rank: what its next heartbeat tells. Both texts are "" before. */
    void (*tell)(void *ctx, char place[STORE_KEY_MAX], char report[STORE_VALUE_MAX]);
    /* In the ranks that are asked, by rank 0. */
    void (*inspect)(void *ctx, const struct rendezvous_inspection *inspection);
    /* On rank 0. A heartbeat of the rank has come. */
    void (*hear)(void *ctx, int rank, const char *place, const char *report);
    void (*leave)(void *ctx, int rank); /* it has left, or is lost */
    /* Once a beat, as long as all ranks are here. Whether an inspection is asked for. */
    bool (*tick)(void *ctx, struct rendezvous_inspection *ret_inspection);
};
#endif
