/* Communicators of GPUs over NCCL. The ranks find each other through the job's store. A watchdog
 * (collective_watchdog) aborts all communicators if a collective does not end, a rank is lost or
 * NCCL reports an error; the streams then run on to that error. Doubles are summed in an order that
 * NCCL chooses, with the same bits on every rank.
 *
 * all_gather, reduce_scatter and all_to_all use blocks that the device allocator hands out again
 * and again, so they may be registered with NCCL at their first use. NVLink SHARP requires memory
 * of ncclMemAlloc(): who registers takes the device's reserve from there, where NCCL has it
 * (device_reserve_from); registration helps NVLink, PCIe and network without it.
 *
 * Symmetric windows (open_window) are memory that NCCL's symmetric kernels read and write on all
 * ranks at once. What NCCL asks for:
 *
 *  - memory of ncclMemAlloc(), or another that cuMemCreate() made (user guide, "Window
 *    Registration")
 *  - all ranks of the communicator register, in one order; the size is the same on all ("Since this
 *    is a collective call, every rank in the communicator needs to participate", reference of
 *    ncclCommWindowRegister; other sizes only since 2.30). It waits without a deadline for a rank
 *    that does not come, so the ranks agree before
 *  - a collective's buffers lie at the same offset of the same window on all ranks (release notes
 *    of 2.27.3: "all ranks of a communicator must pass buffers at the same offset in the same
 *    registration"). Whether a buffer lies in a window each rank finds out for itself
 *    (src/scheduler/symmetric_sched.cc), so a rank that passes another one runs another kernel than
 *    its peers, and waits for them forever. A part of a buffer that begins at rank * count is at
 *    another offset on each rank: nothing is gathered or reduced in place there
 *  - no memory is registered twice with one communicator (the same reference), and no two windows
 *    are cut from one allocation (NVIDIA/nccl#2198, #2331, mended in 2.31)
 *  - both buffers in windows, fp32 or smaller, and a sum: a mean (ncclAvg) is done by the other
 *    kernels (src/sym_kernels.cc). So a mean is a sum here, divided after it
 *  - nothing uses a window when it is deregistered, which each rank does for itself
 *
 * Where ranks cannot reach each other's memory (several nodes; before 2.28 also several NVLink
 * domains) NCCL takes windows for registered buffers, and its other kernels. It does not say so.
 * With NCCL_WIN_ENABLE=0 and the like it registers nothing. ncclCommAbort() drops all windows. */
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
    bool has_windows;    /* as in struct comm; likewise */
    struct watchdog_options watchdog; /* comm_nccl_open() fills in rank and store */
};

/* Opens the communicator of all `size` ranks, each with a GPU of its own. Blocks until all are
 * connected. NCCL uses the calling thread's current device, so that must be `device`. Errors:
 * ERR_TIMEOUT, ERR_PEER; ERR_MEMORY. */
int comm_nccl_open(const struct nccl_api *api, const struct comm_nccl_options *options,
                   struct device *device, int rank, int size, struct comm **ret_comm,
                   struct error *err);
#endif
