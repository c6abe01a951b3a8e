/* Registers memory with NCCL (ncclCommRegister), so that NCCL moves it without a copy of its own
 * where the hardware can. NCCL's rule: if one rank passes registered memory to a collective, all
 * ranks must. Memory is deregistered before it is freed and before its communicator
 * is destroyed. */
#ifndef SHOAL_AGENT_COMM_NCCL_BUFFERS_H
#define SHOAL_AGENT_COMM_NCCL_BUFFERS_H

#include "agent/comm/nccl_api.h"

/* A NULL pointer to it is valid: the functions below then do nothing. */
struct nccl_buffers;

struct nccl_buffers *nccl_buffers_open(const struct nccl_api *api); /* has comm_register */
void nccl_buffers_close(
    struct nccl_buffers *buffers); /* after nccl_buffers_deregister_all() of all */

/* Registers memory[bytes] for the communicator, unless it is already. Returns NCCL's result;
 * NCCL_IN_PROGRESS: the caller waits for it. */
int nccl_buffers_register(struct nccl_buffers *buffers, nccl_comm comm, const void *memory,
                          size_t bytes);
/* Deregisters memory[bytes], which nothing uses any more, before the device frees it. alive: false
 * while communicators are aborted, as ncclCommAbort() deregisters itself. */
void nccl_buffers_deregister(struct nccl_buffers *buffers, const void *memory, size_t bytes,
                             bool alive);
/* Deregisters all of the communicator's memory. */
void nccl_buffers_deregister_all(struct nccl_buffers *buffers, nccl_comm comm, bool alive);
#endif
