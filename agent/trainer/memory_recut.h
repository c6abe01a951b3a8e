/* Snapshots in memory of a run that had another number of ranks, or this rank another number: the
 * newest of which the ranks have every slice, in their own memory or in what they keep of others,
 * is cut anew. Slices go to all ranks, one after the other and unit by unit. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_RECUT_H
#define SHOAL_AGENT_TRAINER_MEMORY_RECUT_H

#include "agent/checkpoint/memory_snapshot.h"
#include "agent/comm/comm.h"
#include "agent/shard/optim.h"
#include "agent/shard/shard.h"

struct memory_recut_slice {
    int holder;          /* the rank that has it */
    const void *payload; /* on that rank: in its memory; else NULL */
};

struct memory_recut {
    int64_t step;      /* the same on all ranks; -1: none, or no rank has another number than
                          before */
    int64_t last_step; /* the last that any rank had done; -1: not known */
    int64_t bytes;     /* of each payload */
    int world_size;    /* ranks that it was saved by */
    int count, parts;  /* slices, and as shard_layout_make() cut them */
    struct memory_recut_slice *slices;
    int64_t begin, end; /* what this rank's memory must keep of itself until the run has saved
                           again; end 0: nothing, and its snapshots are laid out from `begin` on */
    struct memory_neighbours neighbours; /* as this rank's memory told them */
    void *memory; /* mapped from its first page on, while it keeps some; else NULL */
    int64_t memory_bytes;
};

/* What depends on the model and the optimizer alone: snapshots of another recipe are not used. */
uint64_t memory_recut_recipe(struct shard *shard, struct optim *optim, const char *optimizer,
                             const char *model);

/* Looks into the memory of all ranks (rank_memory.h; fd 0: there is none). What is to be cut anew
 * stays there; all else is given back to the system. mine: this rank's snapshots from now on; of
 * their layout only the recipe is looked at. Collective. Errors: those of peers. */
int memory_recut_find(struct comm *world, struct stream *stream, int fd,
                      const struct memory_snapshot_id *mine, struct memory_recut *ret_recut,
                      struct error *err);
void memory_recut_close(
    struct memory_recut *recut); /* also one that is all zero; the memory stays */

/* Cuts it: fills this rank's weights and optimizer state. In a payload the tensors, as host_state.h
 * lays them out, begin at `offset`; *ret_head: what is before them, of the first slice; the caller
 * frees it. host: moves host memory. Collective. */
int memory_recut_load(const struct memory_recut *recut, struct comm *host, struct shard *shard,
                      struct optim *optim, int64_t offset, void **ret_head, struct error *err);
#endif
