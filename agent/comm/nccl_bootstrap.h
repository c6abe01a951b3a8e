/* Opens and closes NCCL communicators: rank 0 publishes an ncclUniqueId in the store, and all ranks
 * pass it to NCCL. NCCL works in the background; the caller's thread polls it until a deadline, or
 * until the store reports a lost rank. */
#ifndef SHOAL_AGENT_COMM_NCCL_BOOTSTRAP_H
#define SHOAL_AGENT_COMM_NCCL_BOOTSTRAP_H

#include "agent/comm/nccl_api.h"
#include "agent/comm/store.h"

enum { NCCL_POLL_US = 200 }; /* between two polls of NCCL */

struct nccl_bootstrap_options {
    const struct nccl_api *api;
    struct store *store;
    const char *group; /* prefix of the communicator's keys in the store; never used before */
    int rank, size;
    int timeout_ms; /* for the whole bootstrap */
};

/* Collective. Errors: ERR_TIMEOUT, ERR_PEER. */
int nccl_bootstrap(const struct nccl_bootstrap_options *options, nccl_comm *ret_comm,
                   struct error *err);
/* Finalizes and destroys the communicator. The ranks need not call it at the same time. */
void nccl_destroy(const struct nccl_api *api, struct store *store, nccl_comm comm);
#endif
