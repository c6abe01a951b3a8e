#include "agent/trainer/memory_recovery.h"

#include "base/mem.h"

/* What a rank sends the others. */
struct rank_memory {
    struct memory_group group;
    int64_t steps[MEMORY_GROUP_MOST][MEMORY_SNAPSHOT_SLOTS]; /* by member; -1: none to be used */
    int64_t last_step, begun_step;
    struct outcome refused;
};

static void read_slots(const struct memory_group *group, const struct memory_snapshots *kept,
                       struct rank_memory *ret)
{
    *ret = (struct rank_memory){.group = *group,
                                .last_step = memory_snapshot_last_step(&kept[group->me]),
                                .begun_step = memory_snapshot_begun_step(&kept[group->me])};
    for (int member = 0; member < MEMORY_GROUP_MOST; member++)
        for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
            struct memory_snapshot snapshot;
            struct error err;
            ret->steps[member][slot] = -1;
            if (member >= group->count || !memory_group_keeps(group, group->me, member))
                continue;
            int result = memory_snapshot_read(&kept[member], slot, &snapshot, &err);
            if (result == 0)
                ret->steps[member][slot] = snapshot.step;
            else if (err.code != ERR_NOT_FOUND)
                outcome_set(&ret->refused, result, &err);
        }
}

/* Where a rank's memory has this step of a member; -1: nowhere. */
static int slot_of(const struct rank_memory *rank, int member, int64_t step)
{
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        if (step >= 0 && rank->steps[member][slot] == step)
            return slot;
    return -1;
}

/* Where it has the newest of the steps before; -1: nowhere. */
static int slot_before(const struct rank_memory *rank, int member, int64_t step)
{
    int found = -1;
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        if (rank->steps[member][slot] >= 0 && rank->steps[member][slot] < step &&
            (found < 0 || rank->steps[member][slot] > rank->steps[member][found]))
            found = slot;
    return found;
}

/* How many of those that keep this rank's snapshots beside it lack the step. */
static int count_lacking(const struct rank_memory *all, const struct memory_group *group,
                         int64_t step)
{
    int count = 0;
    for (int other = 0; other < group->count; other++)
        count += other != group->me && memory_group_keeps(group, other, group->me) &&
                 slot_of(&all[group->ranks[other]], group->me, step) < 0;
    return count;
}

/* Who has this step of a member: that one itself, else the first other one; -1: nobody. */
static int holder_of(const struct rank_memory *all, const struct memory_group *group, int member,
                     int64_t step)
{
    if (slot_of(&all[group->ranks[member]], member, step) >= 0)
        return member;
    for (int other = 0; other < group->count; other++)
        if (slot_of(&all[group->ranks[other]], member, step) >= 0)
            return other;
    return -1;
}

static bool is_complete(const struct rank_memory *all, int size, int64_t step)
{
    for (int r = 0; r < size; r++)
        if (holder_of(all, &all[r].group, all[r].group.me, step) < 0)
            return false;
    return true;
}

/* What all ranks have must be there of rank 0: these are few. */
static int64_t newest_step(const struct rank_memory *all, int size)
{
    const struct memory_group *group = &all[0].group;
    int64_t newest = -1;
    for (int other = 0; other < group->count; other++)
        for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
            int64_t step = all[group->ranks[other]].steps[group->me][slot];
            if (step > newest && is_complete(all, size, step))
                newest = step;
        }
    return newest;
}

int memory_recovery_find(struct comm *comm, struct stream *stream, const struct memory_group *group,
                         const struct memory_snapshots *kept, struct memory_found *ret_found,
                         struct error *err)
{
    struct rank_memory mine;
    auto_free struct rank_memory *all = xcalloc((size_t)comm->size, sizeof *all);
    read_slots(group, kept, &mine);
    if (agree_gather(comm, stream, &mine, all, sizeof mine, err) < 0)
        return -1;
    struct memory_found found = {
        .step = newest_step(all, comm->size), .last_step = -1, .begun_step = -1};
    for (int member = 0; member < group->count; member++) {
        int holder = holder_of(all, group, member, found.step);
        found.slots[member] = slot_of(&mine, member, found.step);
        found.older[member] = slot_before(&mine, member, found.step);
        found.from[member] = holder == member ? -1 : holder;
    }
    for (int r = comm->size - 1; r >= 0; r--) {
        int own = all[r].group.me;
        found.sent += found.step >= 0 && slot_of(&all[r], own, found.step) < 0;
        found.lacking += count_lacking(all, &all[r].group, found.step);
        if (all[r].last_step > found.last_step)
            found.last_step = all[r].last_step;
        if (all[r].begun_step > found.begun_step)
            found.begun_step = all[r].begun_step;
        if (found.step < 0 && all[r].refused.failed) {
            found.refused = all[r].refused;
            found.refused_rank = r;
        }
    }
    *ret_found = found;
    return 0;
}
