#include "agent/trainer/memory_recovery.h"

#include "base/mem.h"

/* What a rank sends the others. */
struct rank_snapshots {
    int64_t steps[MEMORY_SNAPSHOT_SLOTS]; /* -1: none that can be used */
    int64_t last_step;
    struct outcome refused;
};

static void read_slots(const struct memory_snapshots *snapshots, struct rank_snapshots *ret)
{
    *ret = (struct rank_snapshots){.last_step = memory_snapshot_last_step(snapshots)};
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
        struct memory_snapshot snapshot;
        struct error err;
        int result = memory_snapshot_read(snapshots, slot, &snapshot, &err);
        ret->steps[slot] = result == 0 ? snapshot.step : -1;
        if (result < 0 && err.code != ERR_NOT_FOUND)
            outcome_set(&ret->refused, result, &err);
    }
}

static int slot_of(const struct rank_snapshots *rank, int64_t step)
{
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        if (step >= 0 && rank->steps[slot] == step)
            return slot;
    return -1;
}

static bool all_have(const struct rank_snapshots *all, int size, int64_t step)
{
    for (int r = 0; r < size; r++)
        if (slot_of(&all[r], step) < 0)
            return false;
    return true;
}

int memory_recovery_find(struct comm *comm, struct stream *stream,
                         const struct memory_snapshots *snapshots, struct memory_found *ret_found,
                         struct error *err)
{
    struct rank_snapshots mine;
    auto_free struct rank_snapshots *all = xcalloc((size_t)comm->size, sizeof *all);
    read_slots(snapshots, &mine);
    if (agree_gather(comm, stream, &mine, all, sizeof mine, err) < 0)
        return -1;
    struct memory_found found = {.step = -1, .slot = -1, .last_step = -1};
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        if (all[0].steps[slot] > found.step && all_have(all, comm->size, all[0].steps[slot]))
            found.step = all[0].steps[slot];
    found.slot = slot_of(&mine, found.step);
    for (int r = comm->size - 1; r >= 0; r--) {
        if (all[r].last_step > found.last_step)
            found.last_step = all[r].last_step;
        if (found.step < 0 && all[r].refused.failed) {
            found.refused = all[r].refused;
            found.refused_rank = r;
        }
    }
    *ret_found = found;
    return 0;
}
