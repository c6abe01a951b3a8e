/* Memory that collectives use again and again, registered with NCCL, which then moves it without a
 * copy of its own where the hardware can. NCCL's rule: if a rank gives a collective registered
 * memory, all do. Deregistered before it is freed and before its communicator goes. */
#ifndef SHOAL_AGENT_NCCL_BUFFERS_H
#define SHOAL_AGENT_NCCL_BUFFERS_H

#include "agent/comm/nccl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: nothing is registered, and these functions do nothing. */
struct nccl_buffers;

struct nccl_buffers *nccl_buffers_open(const struct nccl_api *api); /* of a library that can */
void nccl_buffers_close(struct nccl_buffers *buffers); /* all communicators have left */

/* Registers memory[bytes] for the communicator, unless it lies in what is. Returns NCCL's result;
 * NCCL_IN_PROGRESS: it is to be waited for. */
int nccl_buffers_use(struct nccl_buffers *buffers, nccl_comm comm, const void *memory,
                     size_t bytes);
/* Deregisters what lies in memory[bytes]: it is about to be freed, and nothing uses it. alive:
 * false if communicators are being aborted, which does that. */
void nccl_buffers_forget(struct nccl_buffers *buffers, const void *memory, size_t bytes,
                         bool alive);
/* Deregisters all of the communicator's. */
void nccl_buffers_leave(struct nccl_buffers *buffers, nccl_comm comm, bool alive);

#ifdef __cplusplus
}
#endif
#endif
