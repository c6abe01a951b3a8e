/* How the ranks of an NCCL communicator meet, and part. What NCCL does in its own time is waited
 * for, up to a deadline or until the store knows of a lost rank. */
#ifndef SHOAL_AGENT_COMM_NCCL_BOOTSTRAP_H
#define SHOAL_AGENT_COMM_NCCL_BOOTSTRAP_H

#include "agent/comm/nccl_api.h"
#include "agent/comm/store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NCCL_POLL_US = 200 }; /* between two questions whether NCCL has got on */

struct nccl_bootstrap_options {
    const struct nccl_api *api;
    struct store *store;
    const char *group; /* the communicator's name, used once in the store */
    int rank, size;
    int timeout_ms; /* of all of it */
};

/* Collective. Errors: ERR_TIMEOUT, ERR_PEER. */
int nccl_bootstrap(const struct nccl_bootstrap_options *options, nccl_comm *ret_comm,
                   struct error *err);
/* Ends what is under way and the communicator. Its ranks need not do so at once. */
void nccl_leave(const struct nccl_api *api, struct store *store, nccl_comm comm);

#ifdef __cplusplus
}
#endif
#endif
