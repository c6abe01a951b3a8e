/* Communicators of GPUs over NCCL. The ranks meet through the job's store; every collective is
 * watched (collective_watchdog), so that one that does not end, a lost rank or an error of NCCL's
 * aborts all of them, and the streams go on to the error. Doubles are summed in an order of NCCL's
 * choosing, the same bits on every rank.
 *
 * What is gathered and reduce-scattered lies in memory that the device gives out again and again:
 * it may be registered when it is first used. It is not from ncclMemAlloc(), which NVLink SHARP
 * asks for; registration serves NVLink, PCIe and network without it. */
#ifndef SHOAL_AGENT_COMM_NCCL_H
#define SHOAL_AGENT_COMM_NCCL_H

#include "agent/comm/collective_watchdog.h"
#include "agent/comm/comm.h"
#include "agent/comm/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct comm_nccl_options {
    struct store *store; /* of all ranks; outlives it */
    int join_timeout_ms; /* how long to wait for the other ranks when opening */
    bool is_concurrent;  /* of the communicators; only if all ranks' NCCL orders launches */
    bool registers;      /* memory of gathers and reduces; only if all ranks' NCCL can */
    struct watchdog_options watchdog; /* rank and store are filled in */
};

/* Opens the communicator of all `size` ranks, each with a GPU of its own; blocks until they
 * have met. NCCL takes the device for the calling thread's. Errors: ERR_TIMEOUT, ERR_PEER;
 * ERR_MEMORY. */
int comm_nccl_open(const struct nccl_api *api, const struct comm_nccl_options *options,
                   struct device *device, int rank, int size, struct comm **ret_comm,
                   struct error *err);

#ifdef __cplusplus
}
#endif
#endif
