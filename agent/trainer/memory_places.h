/* Where the pods of a run are, as their ranks tell each other, and what groups of buddies follow
 * from that (memory_group.h). */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_PLACES_H
#define SHOAL_AGENT_TRAINER_MEMORY_PLACES_H

#include "agent/comm/comm.h"
#include "agent/trainer/memory_group.h"
#include "base/str.h"

/* Where a rank runs. */
struct memory_place {
    int local_size;                  /* ranks of its pod */
    const char *node;                /* its pod's; NULL or "": nobody has told */
    uint64_t machine;                /* the same for all that share it; 0: not known */
    struct memory_neighbours before; /* what its memory was laid out for */
};

/* This rank's groups. */
struct memory_buddy_plan {
    bool has_groups; /* else each rank is alone; the same on all, as the next three */
    bool is_moving;  /* memory was laid out for other groups: this one's is `before` */
    bool is_uneven;  /* a rank keeps snapshots of more than two others */
    bool is_exposed; /* a node may be lost with a rank and all that keep its snapshots */
    struct memory_group group, before;
    struct memory_group even; /* with no regard to nodes */
};

/* why: gets why there are no groups. where: gets which pods are together, and where they are.
 * Collective. Errors: those of peers. */
int memory_places_plan(struct comm *host, struct stream *stream, const struct memory_place *place,
                       struct memory_buddy_plan *ret_plan, struct str *why, struct str *where,
                       struct error *err);
#endif
