/* The rendezvous of a job's processes at MASTER_ADDR:MASTER_PORT, as torchrun's: rank 0 listens
 * there, the others connect, and when all have joined they share a store. The connections stay
 * open. When a process dies, its kernel closes the connection, and rank 0 notifies all others which
 * rank was lost. A process that is stopped or cut off is found by its missing heartbeats. Knows no
 * collectives. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_H

#include "agent/comm/rendezvous_health.h"
#include "agent/comm/store.h"

#define RENDEZVOUS_BEAT_MS    1000
#define RENDEZVOUS_SILENCE_MS 15000

struct rendezvous_options {
    const char *host;    /* MASTER_ADDR. Rank 0 listens on all addresses unless this is a loopback
                            address: a host's own name may resolve to the loopback on that host */
    int port;            /* MASTER_PORT */
    int rank, size;      /* of this process, and all */
    const char *job_id;  /* the same on all processes; "": none */
    const char *secret;  /* the run's, the same on all processes; "": none */
    int join_timeout_ms; /* how long to wait for all ranks to join */
    int beat_ms;         /* between two heartbeats */
    int silence_ms;      /* a process without a heartbeat for so long is lost; several beat_ms */
    struct rendezvous_health health; /* what heartbeats tell; functions NULL: nothing */
};

struct rendezvous;

/* Blocks until all ranks have joined. While pods start, a name may not resolve yet and connections
 * are refused: both are retried until the time is up. Errors: ERR_TIMEOUT names the missing ranks,
 * or the failure of the last attempt; ERR_CONFIG if ranks contradict each other, ERR_EXISTS if the
 * port is in use. */
int rendezvous_open(const struct rendezvous_options *options, struct rendezvous **ret_rendezvous,
                    struct error *err);
/* The store lives as long as the rendezvous. When a rank is lost, the store reports it. */
struct store *rendezvous_store(struct rendezvous *r);
/* Tells the other ranks that this process fails, and why, so that they stop waiting for it. The
 * caller still calls rendezvous_close(). */
void rendezvous_fail(struct rendezvous *r, const char *why);
/* Says goodbye, so that this process does not count as lost. NULL-safe. When rank 0 closes, the
 * store ends for all ranks. */
void rendezvous_close(struct rendezvous *r);
#endif
