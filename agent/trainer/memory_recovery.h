/* Which snapshot in memory a run can go on from: the newest step that all ranks have complete. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H
#define SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H

#include "agent/checkpoint/memory_snapshot.h"
#include "agent/comm/agree.h"

struct memory_found {
    int64_t step;           /* the same on all ranks; -1: there is none that all have */
    int slot;               /* of this rank, that has it */
    int64_t last_step;      /* the last that any rank had done; -1: not known */
    struct outcome refused; /* with step -1: why a rank did not take what it has, if one did not */
    int refused_rank;
};

/* Collective. Errors: those of peers. */
int memory_recovery_find(struct comm *comm, struct stream *stream,
                         const struct memory_snapshots *snapshots, struct memory_found *ret_found,
                         struct error *err);
#endif
