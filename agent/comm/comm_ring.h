/* Communicators over a ring of sockets: for ranks that are processes on CPUs (the store is a
 * rendezvous) and for threads of one process. The sum of a chunk goes around the ring
 * from the rank after the chunk's owner, so its order depends on nothing but the world size. */
#ifndef SHOAL_AGENT_COMM_RING_H
#define SHOAL_AGENT_COMM_RING_H

#include "agent/comm/comm.h"
#include "agent/comm/net.h"
#include "agent/comm/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COMM_RING_SIZE_MAX 4096 /* ranks */

struct comm_ring_options {
    int join_timeout_ms; /* how long to wait for the other ranks when opening */
    int timeout_ms;      /* a collective in which nothing moves for so long has failed */
    char interface[NET_INTERFACE_BYTES]; /* network interface that others reach this process at
                                            (net_interface_asked); "": the one that leads to the
                                            store. Communicators that are split off use it, too */
};

/* Opens the communicator of all `size` ranks that share the store; blocks until they have met. The
 * store outlives it, and news of a lost rank from the store abort it. With one rank:
 * comm_self_open. Errors: ERR_TIMEOUT, ERR_PEER (name the rank), ERR_CONFIG. */
int comm_ring_open(struct store *store, int rank, int size, const struct comm_ring_options *options,
                   struct comm **ret_comm, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
