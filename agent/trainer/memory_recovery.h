/* Which snapshots in memory a run can go on from: those of the newest step that is there for every
 * rank. It is there in the rank's own memory, or in its buddy's: a rank of another pod. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H
#define SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H

#include "agent/comm/agree.h"
#include "agent/trainer/memory_group.h"

struct memory_found {
    int64_t step;                 /* the same on all ranks; -1: there is none */
    int slots[MEMORY_GROUP_MOST]; /* of this rank's memory, by member: which has it; -1: none */
    int older[MEMORY_GROUP_MOST]; /* likewise: which has the newest of the steps before */
    int from[MEMORY_GROUP_MOST]; /* by member: the member that must send it its snapshot; -1: it has
                                    one */
    int sent;                    /* of all ranks: that get theirs from another */
    int lacking;                 /* copies of it, of all ranks, that who is to keep them has not */
    int64_t last_step;           /* the last that any rank had done; -1: not known */
    int64_t begun_step;          /* and had begun, done or not; likewise */
    struct outcome refused; /* with step -1: why a rank did not take what it has, if one did not */
    int refused_rank;
};

/* kept[group->count]: this rank's memory, by member of whom it keeps any. Collective. Errors: those
 * of peers. */
int memory_recovery_find(struct comm *comm, struct stream *stream, const struct memory_group *group,
                         const struct memory_snapshots *kept, struct memory_found *ret_found,
                         struct error *err);
#endif
