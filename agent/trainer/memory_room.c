#include "agent/trainer/memory_room.h"

#include "base/gigabytes.h"

static int check_bound(const struct memory_claim *ranks, int count, int rank, int most,
                       enum memory_bound_of of, struct error *err)
{
    struct memory_bound bound = ranks[rank].bounds[of];
    int64_t snapshots = 0, training = 0;
    int sharing = 0;
    if (bound.left == INT64_MAX)
        return 0;
    for (int r = 0; r < count; r++) {
        if (ranks[r].bounds[of].id != bound.id)
            continue;
        if (sharing < most) {
            sharing++;
            snapshots += ranks[r].snapshots;
            training += ranks[r].training;
        } else {
            training -= ranks[r].held;
        }
        /* They looked one after the other. */
        if (ranks[r].bounds[of].left < bound.left)
            bound.left = ranks[r].bounds[of].left;
    }
    /* Ranks that are started again have their snapshots' memory already. */
    if (snapshots <= 0 || snapshots + training <= bound.left - bound.left / MEMORY_ROOM_KEPT_PART)
        return 0;
    return error_set(err, ERR_MEMORY,
                     "memory checkpoints of %d rank%s need %.2f GB, beside %.2f GB for training, "
                     "but %s has %.2f GB left, of which a tenth stays free",
                     sharing, sharing == 1 ? "" : "s", gigabytes(snapshots),
                     gigabytes(training > 0 ? training : 0), memory_bound_name(of),
                     gigabytes(bound.left));
}

int memory_room_check(const struct memory_claim *ranks, int count, int rank, int most,
                      struct error *err)
{
    for (int of = 0; of < MEMORY_BOUNDS; of++)
        if (check_bound(ranks, count, rank, most, of, err))
            return -1;
    return 0;
}
