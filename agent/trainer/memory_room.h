/* Whether host memory has room for the snapshots of all ranks. Ranks that share a machine or a
 * container's limit, of one launcher or of several, take from the same. Pure. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_ROOM_H
#define SHOAL_AGENT_TRAINER_MEMORY_ROOM_H

#include "base/error.h"
#include "base/memory_left.h"

enum { MEMORY_ROOM_KEPT_PART = 10 }; /* of what is left, a tenth stays free: plans are no limits */

/* What one rank will take, and from what. */
struct memory_claim {
    struct memory_bound bounds[MEMORY_BOUNDS];
    int64_t snapshots; /* bytes, less those that its memory has already */
    int64_t training;  /* bytes that it will take beside */
    int64_t held;      /* bytes that it gives back if it is gone by then */
};

/* Whether `rank` and all that share what bounds it have room. most: ranks that there will be; those
 * that are gone by then are others, as far as can be. Errors: ERR_MEMORY if not. */
int memory_room_check(const struct memory_claim *ranks, int count, int rank, int most,
                      struct error *err);
#endif
