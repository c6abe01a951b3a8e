/* The ranks of a run as its rank 0 shows them: a report of one, read, and drawn as bars. Pure. */
#ifndef SHOAL_CLI_RANK_LIST_H
#define SHOAL_CLI_RANK_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { RANK_LIST_MAX = 256, RANK_LIST_PHASE_BYTES = 16 };

struct rank_item {
    int rank;
    char phase[RANK_LIST_PHASE_BYTES]; /* what it does: "step", "data", ... */
    bool waits;                        /* in a collective, for others */
    bool straggles, hangs;
    double compute_ratio; /* how long it computes a step, in that of the middle one; 0: not known */
};

struct rank_list {
    struct rank_item items[RANK_LIST_MAX]; /* the first, in the order of ranks */
    size_t count;
};

/* Adds a line for each rank: a bar of how long it computes beside the slowest, and what it does. If
 * they are more than `rows`, only those that straggle or hang, as many as there is room for.
 * Nothing of fewer than two ranks. */
void rank_list_draw(const struct rank_list *list, int columns, int rows, struct str *out);
#endif
