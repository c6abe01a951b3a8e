/* Communicators over a ring of sockets between CPU ranks: processes whose store is a rendezvous, or
 * threads of one process in tests. The partial sum of a chunk starts at the rank after the chunk's
 * owner and goes around the ring. So its order depends only on the number of ranks. */
#ifndef SHOAL_AGENT_COMM_COMM_RING_H
#define SHOAL_AGENT_COMM_COMM_RING_H

#include "agent/comm/collective_progress.h"
#include "agent/comm/comm.h"
#include "agent/comm/net.h"
#include "agent/comm/store.h"

#define COMM_RING_SIZE_MAX 4096 /* ranks */

struct comm_ring_options {
    int join_timeout_ms; /* how long to wait for the other ranks when opening */
    int timeout_ms;      /* a collective in which no byte moves for so long fails */
    struct collective_progress *progress; /* where to note collectives; NULL: nowhere; not owned */
    char interface[NET_INTERFACE_BYTES];  /* network interface where others reach this process
                                             (net_interface_choose); "": the one with the route to
                                             the store. Split communicators use it, too */
};

/* Opens the communicator of all `size` ranks that share the store. Blocks until all are connected.
 * The store outlives it; when the store loses a rank, the communicator aborts. With one rank:
 * comm_self_open. Errors: ERR_TIMEOUT and ERR_PEER name the rank; ERR_CONFIG. */
int comm_ring_open(struct store *store, int rank, int size, const struct comm_ring_options *options,
                   struct comm **ret_comm, struct error *err);
#endif
