/* Which snapshots in memory a run can go on from: those of the newest step that is there for every
 * rank. It is there in the rank's own memory, or in its buddy's: a rank of another pod. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H
#define SHOAL_AGENT_TRAINER_MEMORY_RECOVERY_H

#include "agent/checkpoint/memory_snapshot.h"
#include "agent/comm/agree.h"

/* Two ranks of two pods, or where the number of pods is odd three of the last three. */
enum { MEMORY_GROUP_MOST = 3 };

/* The ranks that keep each other's snapshots, in order, the same for each of them. */
struct memory_group {
    int count, me;
    int ranks[MEMORY_GROUP_MOST];
};

/* Those of `rank`: itself, and the ranks of the same local rank in the pod or pods beside its own.
 * Itself alone with one pod. Pure. */
struct memory_group memory_group_of(int rank, int world_size, int local_size);

struct memory_found {
    int64_t step;                 /* the same on all ranks; -1: there is none */
    int slots[MEMORY_GROUP_MOST]; /* of this rank's memory, by member: which has it; -1: none */
    int from[MEMORY_GROUP_MOST]; /* by member: the member that must send it its snapshot; -1: it has
                                    one */
    int sent;                    /* of all ranks: that get theirs from another */
    int64_t last_step;           /* the last that any rank had done; -1: not known */
    struct outcome refused; /* with step -1: why a rank did not take what it has, if one did not */
    int refused_rank;
};

/* kept[group->count]: this rank's memory, by member. Collective. Errors: those of peers. */
int memory_recovery_find(struct comm *comm, struct stream *stream, const struct memory_group *group,
                         const struct memory_snapshots *kept, struct memory_found *ret_found,
                         struct error *err);
#endif
