#include "agent/trainer/memory_buddies.h"

#include "base/mem.h"

#include <string.h>

/* ---- connections ---- */

static bool is_kept_by_all(const struct memory_group *g, int member)
{
    return g->keepers[member] == (1U << g->count) - 1;
}

static void disconnect(struct memory_buddies *b)
{
    for (int m = 0; m < MEMORY_GROUP_MOST; m++) {
        if (b->to[m] != b->comm)
            comm_close(b->to[m]);
        b->to[m] = NULL;
    }
    comm_close(take(b->comm));
}

/* Whose snapshots not all of a group keep has a communicator of its own, with those that do. */
static int connect_keepers(struct memory_buddies *b, struct error *err)
{
    const struct memory_group *g = &b->group;
    enum { BYSTANDER = 2 }; /* those that keep it are 1, and each other one is alone */
    for (int m = 0; m < g->count; m++) {
        bool is_part = memory_group_keeps(g, g->me, m);
        if (is_kept_by_all(g, m)) {
            b->to[m] = b->comm;
            continue;
        }
        if (b->comm->fn->split(b->comm, is_part ? 1 : BYSTANDER + g->me, &b->to[m], err))
            return -1;
        if (!is_part)
            comm_close(take(b->to[m]));
    }
    return 0;
}

/* Collective of all ranks. */
static int join(struct memory_buddies *b, const struct memory_group *group, struct error *err)
{
    disconnect(b);
    b->group = *group;
    if (b->host->fn->split(b->host, group->ranks[0], &b->comm, err))
        return -1;
    if (group->count > 1)
        return connect_keepers(b, err);
    comm_close(take(b->comm));
    return 0;
}

int memory_buddies_open(struct memory_buddies *b, struct comm *host,
                        const struct memory_place *place, bool wanted, struct str *why,
                        struct str *where, struct error *err)
{
    *b = (struct memory_buddies){.host = host,
                                 .group = {.count = 1, .ranks = {host->rank}, .keepers = {1}}};
    if (!wanted)
        return 0;
    if (device_open("cpu", 1, &b->device, err) ||
        stream_open(b->device, "memory buddies", &b->stream, err) ||
        memory_places_plan(host, b->stream, place, &b->plan, why, where, err))
        return -1;
    if (!b->plan.has_groups)
        return 0;
    return join(b, b->plan.is_moving ? &b->plan.before : &b->plan.group, err);
}

void memory_buddies_close(struct memory_buddies *b)
{
    disconnect(b);
    stream_close(b->stream);
    device_close(b->device);
    *b = (struct memory_buddies){0};
}

void memory_buddies_part(struct memory_buddies *b)
{
    disconnect(b);
    b->plan.has_groups = b->plan.is_moving = b->plan.is_uneven = false;
    b->group =
        (struct memory_group){.count = 1, .ranks = {b->group.ranks[b->group.me]}, .keepers = {1}};
}

void memory_buddies_abort(struct memory_buddies *b, const char *reason)
{
    for (int m = 0; m < b->group.count; m++)
        if (b->to[m])
            b->to[m]->fn->abort(b->to[m], reason);
}

int memory_buddies_move(struct memory_buddies *b, struct error *err)
{
    b->plan.is_moving = false;
    return join(b, &b->plan.group, err);
}

int memory_buddies_level(struct memory_buddies *b, struct error *err)
{
    b->plan.is_uneven = false;
    b->plan.group = b->plan.even;
    return join(b, &b->plan.group, err);
}

/* ---- memory ---- */

int64_t memory_buddies_bytes(const struct memory_buddies *b, int64_t payload_bytes)
{
    int kept = 0;
    for (int m = 0; m < b->group.count; m++)
        kept += memory_group_keeps(&b->group, b->group.me, m);
    return kept * memory_snapshot_bytes(payload_bytes);
}

int memory_buddies_lay_out(struct memory_buddies *b, void *memory, int64_t payload_bytes,
                           const struct memory_snapshot_id *id, struct error *err)
{
    struct memory_snapshot_id ids[MEMORY_GROUP_MOST];
    const struct memory_neighbours neighbours = memory_group_neighbours(&b->group, id->world_size);
    ids[b->group.me] = *id;
    if (b->comm && agree_gather(b->comm, b->stream, id, ids, sizeof *id, err))
        return -1;
    char *at = memory; /* its own come first: they are found whether there is a group or not */
    memory_snapshot_open(at, payload_bytes, id, &b->kept[b->group.me]);
    memory_snapshot_set_neighbours(&b->kept[b->group.me], &neighbours);
    for (int member = 0; member < b->group.count; member++) {
        if (member == b->group.me || !memory_group_keeps(&b->group, b->group.me, member))
            continue;
        at += memory_snapshot_bytes(payload_bytes);
        memory_snapshot_open(at, payload_bytes, &ids[member], &b->kept[member]);
    }
    return 0;
}

/* A member's snapshot that comes. */
struct arriving {
    struct memory_snapshots *kept;
    int64_t step;
};

static int commit(void *args, struct error *err)
{
    const struct arriving *arriving = args;
    (void)err;
    memory_snapshot_commit(arriving->kept, arriving->step, arriving->kept->payload_bytes);
    return 0;
}

/* Of those that keep a member's snapshots the how manieth one is. */
static int place_of(const struct memory_group *g, int member, int keeper)
{
    int place = 0;
    for (int other = 0; other < keeper; other++)
        place += memory_group_keeps(g, other, member);
    return place;
}

/* *slot: of this rank's memory, where the member's snapshot is or, -1, will be. */
static void send_one(struct memory_buddies *b, struct stream *stream, int member, int from,
                     int64_t step, int *slot)
{
    struct memory_snapshots *kept = &b->kept[member];
    struct comm *to = b->to[member];
    bool is_new = *slot < 0;
    if (!to)
        return;
    void *payload =
        is_new ? memory_snapshot_begin(kept, slot) : memory_snapshot_payload(kept, *slot);
    to->fn->broadcast(to, stream, payload, kept->payload_bytes, place_of(&b->group, member, from));
    if (is_new)
        stream_call(stream, commit, &(struct arriving){kept, step}, sizeof(struct arriving));
}

void memory_buddies_exchange(struct memory_buddies *b, struct stream *stream, int slot,
                             int64_t step)
{
    for (int member = 0; b->comm && member < b->group.count; member++) {
        int its = member == b->group.me ? slot : -1;
        send_one(b, stream, member, member, step, &its);
    }
}

int memory_buddies_fetch(struct memory_buddies *b, struct memory_found *found, struct error *err)
{
    for (int member = 0; b->comm && member < b->group.count; member++) {
        if (found->from[member] < 0)
            continue;
        if (found->slots[member] < 0 && found->older[member] >= 0) /* it stays until this is here */
            memory_snapshot_keep(&b->kept[member], -1, found->older[member]);
        send_one(b, b->stream, member, found->from[member], found->step, &found->slots[member]);
    }
    return b->comm ? stream_sync(b->stream, err) : 0;
}

void memory_buddies_keep(struct memory_buddies *b, const struct memory_found *found, int64_t step)
{
    bool is_there = found->step == step;
    for (int member = 0; member < b->group.count; member++)
        if (memory_group_keeps(&b->group, b->group.me, member))
            memory_snapshot_keep(&b->kept[member], is_there ? found->slots[member] : -1,
                                 is_there ? found->older[member] : -1);
}
