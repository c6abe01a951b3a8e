/* Splits the ranks of a communicator into groups: each rank writes its color into the store and
 * reads the others'. Knows no transport. */
#ifndef SHOAL_AGENT_COMM_COMM_SPLIT_H
#define SHOAL_AGENT_COMM_COMM_SPLIT_H

#include "agent/comm/store.h"

enum { COMM_ID_BYTES = 48 };

/* The ranks of a communicator. */
struct comm_group {
    char id[COMM_ID_BYTES]; /* prefix of its keys in the store: the same on its ranks, unique */
    int rank, size;
    int *world_ranks; /* [size] their numbers in the job; owned */
};

/* All `size` ranks of the job. */
void comm_group_world(const char *id, int rank, int size, struct comm_group *ret_group);
void comm_group_copy(const struct comm_group *from, struct comm_group *ret_group);
void comm_group_free(struct comm_group *group);

/* The group of the ranks that pass the same color, in the order of their ranks. number: counts the
 * splits of `group`, from 0. Collective. Errors: ERR_TIMEOUT and ERR_PEER name the rank. */
int comm_group_split(const struct comm_group *group, struct store *store, int number, int color,
                     int timeout_ms, struct comm_group *ret_group, struct error *err);
#endif
