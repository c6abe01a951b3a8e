/* Whose snapshots a rank keeps beside its own: those of ranks of the same local rank in other pods.
 * Two pods keep each other's; where the number of pods is odd three of the last do. A pod and its
 * buddy are on two nodes wherever the job has pods on more than one. Pure. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_GROUP_H
#define SHOAL_AGENT_TRAINER_MEMORY_GROUP_H

#include "agent/checkpoint/memory_snapshot.h"

/* Where most pods share a node, one elsewhere keeps the snapshots of several: of eight at most. */
enum { MEMORY_GROUP_MOST = MEMORY_NEIGHBOURS_MOST + 1 };

/* Ranks that keep each other's snapshots, in order, the same for each of them. */
struct memory_group {
    int count, me;
    int ranks[MEMORY_GROUP_MOST];
    unsigned keepers[MEMORY_GROUP_MOST]; /* by member: a bit for each member that has its
                                            snapshots, itself among them */
};

bool memory_group_keeps(const struct memory_group *group, int holder, int member);
/* Whose slots lie behind this rank's. */
struct memory_neighbours memory_group_neighbours(const struct memory_group *group, int world_size);

/* nodes[pods]: the same number for pods of one node. ret_groups[pods]: the same number for pods
 * that keep each other's. Pods are paired in their order; only pairs that share a node change a
 * member. What a pod keeps of others is as little as can be. */
void memory_groups_assign(const int *nodes, int pods, int *ret_groups);
/* Pods whose snapshots are on their own node alone. */
int memory_groups_count_exposed(const int *nodes, const int *groups, int pods);

/* The group of a rank: of the pods of its pod's group. Each keeps the snapshots of those on other
 * nodes; of all where all share one. */
struct memory_group memory_group_of(int rank, int local_size, const int *nodes, const int *groups,
                                    int pods);
/* That of before, as the memory of all ranks tells it: before[world_size], zeroes where a rank's
 * memory is new. Itself alone if nobody knows. */
struct memory_group memory_group_before(int rank, const struct memory_neighbours *before,
                                        int world_size);
#endif
