/* Rank 0's side of the rendezvous: a thread that waits until every rank has joined, then serves
 * their store. It notifies all ranks when a connection ends without a goodbye, or sends no
 * heartbeat for too long. A server serves one round (rendezvous_round.h); after a loss, a new round
 * needs a new one. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_SERVER_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_SERVER_H

#include "agent/comm/rendezvous_health.h"
#include "base/error.h"

struct rendezvous_server;

struct rendezvous_server_options {
    const char *host; /* where to listen, as in listen_tcp() */
    int port;
    int size;                        /* ranks */
    const char *job_id, *secret;     /* as in struct rendezvous_round_options */
    int beat_ms;                     /* between two heartbeats */
    int silence_ms;                  /* a rank without a heartbeat for so long is lost */
    struct rendezvous_health health; /* as in struct rendezvous_options */
};

/* Listens and starts the thread. Errors: as of listen_tcp; ERR_CONFIG if RLIMIT_NOFILE is too low
 * for so many ranks. */
int rendezvous_server_open(const struct rendezvous_server_options *options,
                           struct rendezvous_server **ret_server, struct error *err);
/* NULL-safe. Says goodbye to all ranks that are still connected. */
void rendezvous_server_close(struct rendezvous_server *server);
#endif
