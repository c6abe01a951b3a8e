/* Rank 0's side of the rendezvous: a thread that waits until every rank of the job has joined, then
 * keeps their store, and tells all when a connection ends without a goodbye or is silent for too
 * long. One server is one round: what comes after it has begun is sent away to try again, and after
 * a loss a new round needs a new server. */
#ifndef SHOAL_AGENT_RENDEZVOUS_SERVER_H
#define SHOAL_AGENT_RENDEZVOUS_SERVER_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rendezvous_server;

struct rendezvous_server_options {
    const char *host; /* where to listen, as in listen_tcp */
    int port;
    int size;           /* ranks */
    const char *job_id; /* processes that come with another one are sent away */
    const char *secret; /* those that do not know it are hung up on; "": none is asked for */
    int beat_ms;        /* how often to send signs of life */
    int silence_ms;     /* a rank that gives none for so long is lost */
};

/* Listens and starts the thread. Errors: ERR_CONFIG if the port is in use, or so many ranks need
 * more open files than a process may have. */
int rendezvous_server_open(const struct rendezvous_server_options *options,
                           struct rendezvous_server **ret_server, struct error *err);
/* NULL-safe. Says goodbye to all who are still there. */
void rendezvous_server_close(struct rendezvous_server *server);

#ifdef __cplusplus
}
#endif
#endif
