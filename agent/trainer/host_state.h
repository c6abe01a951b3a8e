/* This rank's slices and optimizer state in host memory, as the named ranges that checkpoints save
 * and load. Knows no files. */
#ifndef SHOAL_AGENT_TRAINER_HOST_STATE_H
#define SHOAL_AGENT_TRAINER_HOST_STATE_H

#include "agent/checkpoint/checkpoint.h"
#include "agent/shard/optim.h"
#include "agent/shard/shard.h"
#include "base/mem.h"

enum { HOST_STATE_MAX_STATES = 2 }; /* tensors an optimizer keeps per parameter */

/* Buffers for one unit's slice: its values, then each optimizer state. */
struct host_unit {
    char *tensor[1 + HOST_STATE_MAX_STATES]; /* [shard_count] of shard_dtype() */
};

struct host_state {
    struct arena *arena; /* owns the buffers, unless they were given; NULL: not open */
    struct shard *shard; /* not owned, as optim */
    struct optim *optim;
    struct host_unit *units;
    int tensors; /* 1 + the optimizer's states */
    struct tensor_ranges parts[CHECKPOINT_PARTS];
};

/* Bytes of all of this rank's slices and optimizer state. */
int64_t host_state_bytes(struct shard *shard, struct optim *optim);

/* Buffers for all of this rank's slices, and the ranges that lie in them. memory: where the buffers
 * lie, one behind the other; not owned. NULL: host_state's own. */
void host_state_open(struct shard *shard, struct optim *optim, void *memory,
                     struct host_state *host);
void host_state_close(struct host_state *host); /* also one that is all zero */

/* Each buffer, and the device's memory that it is a copy of. */
void host_state_each(const struct host_state *host,
                     void (*visit)(void *ctx, void *here, void *there, size_t bytes), void *ctx);

enum host_state_way { TO_HOST, TO_DEVICE };
/* Waits for all queued work. */
int host_state_copy(const struct host_state *host, enum host_state_way way, struct error *err);
#endif
