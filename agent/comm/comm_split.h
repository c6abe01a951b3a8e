/* What the ranks of a communicator tell each other through the store; and splits them into groups
 * by what they have told. Knows no transport. */
#ifndef SHOAL_AGENT_COMM_COMM_SPLIT_H
#define SHOAL_AGENT_COMM_COMM_SPLIT_H

#include "agent/comm/store.h"

#include <stdint.h>

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

/* ret_values[r] on every rank = what rank r of the group has passed. what: for keys and errors.
 * number: counts its exchanges in this group, from 0. Collective. Errors: ERR_TIMEOUT and ERR_PEER
 * name the rank. */
int comm_group_exchange(const struct comm_group *group, struct store *store, const char *what,
                        int number, int64_t value, int timeout_ms, int64_t *ret_values,
                        struct error *err);

/* The group of the ranks that pass the same color, in the order of their ranks. number: counts the
 * splits of `group`, from 0. Collective. Errors: as above. */
int comm_group_split(const struct comm_group *group, struct store *store, int number, int color,
                     int timeout_ms, struct comm_group *ret_group, struct error *err);
#endif
