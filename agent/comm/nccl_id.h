/* The id under which the ranks of an NCCL communicator meet, by way of the job's store. */
#ifndef SHOAL_AGENT_NCCL_ID_H
#define SHOAL_AGENT_NCCL_ID_H

#include "agent/comm/nccl_api.h"
#include "agent/comm/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* group: the communicator's name, used once in the store. Errors: the store's; ERR_INPUT. */
int nccl_id_send(struct store *store, const char *group, const struct nccl_id *id,
                 struct error *err);
int nccl_id_receive(struct store *store, const char *group, int timeout_ms, struct nccl_id *ret_id,
                    struct error *err);

#ifdef __cplusplus
}
#endif
#endif
