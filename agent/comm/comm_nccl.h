/* Communicators of GPUs over NCCL. The ranks find each other through the job's store. A watchdog
 * (collective_watchdog) aborts all communicators if a collective does not end, a rank is lost or
 * NCCL reports an error; the streams then run on to that error. Doubles are summed in an order that
 * NCCL chooses, with the same bits on every rank.
 *
 * all_gather, reduce_scatter and all_to_all use blocks that the device allocator hands out again
 * and again, so they may be registered with NCCL at their first use. NVLink SHARP requires memory
 * of ncclMemAlloc(): who registers takes the device's reserve from there, where NCCL has it
 * (device_reserve_from); registration helps NVLink, PCIe and network without it. */
#ifndef SHOAL_AGENT_COMM_COMM_NCCL_H
#define SHOAL_AGENT_COMM_COMM_NCCL_H

#include "agent/comm/collective_watchdog.h"
#include "agent/comm/comm.h"
#include "agent/comm/nccl_api.h"

struct comm_nccl_options {
    struct store *store; /* of all ranks; outlives the communicator */
    int join_timeout_ms; /* how long to wait for the other ranks when opening */
    bool is_concurrent;  /* as in struct comm; only if every rank's NCCL orders launches */
    bool registers;      /* register memory of gathers and reduces; only if every rank's NCCL can */
    struct watchdog_options watchdog; /* comm_nccl_open() fills in rank and store */
};

/* Opens the communicator of all `size` ranks, each with a GPU of its own. Blocks until all are
 * connected. NCCL uses the calling thread's current device, so that must be `device`. Errors:
 * ERR_TIMEOUT, ERR_PEER; ERR_MEMORY. */
int comm_nccl_open(const struct nccl_api *api, const struct comm_nccl_options *options,
                   struct device *device, int rank, int size, struct comm **ret_comm,
                   struct error *err);
#endif
