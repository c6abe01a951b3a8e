#include "agent/trainer/memory_buddies.h"

#include "base/mem.h"

#include <string.h>

/* Pods of different sizes have no pairs of ranks. */
static int agree_on_sizes(struct memory_buddies *b, struct comm *host, int local_size,
                          bool *ret_same, struct error *err)
{
    auto_free int32_t *sizes = xcalloc((size_t)host->size, sizeof *sizes);
    int32_t mine = local_size;
    if (agree_gather(host, b->stream, &mine, sizes, sizeof mine, err))
        return -1;
    *ret_same = host->size % local_size == 0;
    for (int r = 0; r < host->size; r++)
        *ret_same = *ret_same && sizes[r] == mine;
    return 0;
}

int memory_buddies_open(struct memory_buddies *b, struct comm *host, int local_size, bool wanted,
                        const char **ret_why, struct error *err)
{
    bool same = false;
    *b = (struct memory_buddies){.group = {.count = 1, .ranks = {host->rank}}};
    *ret_why = "";
    if (!wanted)
        return 0;
    if (device_open("cpu", 1, &b->device, err) ||
        stream_open(b->device, "memory buddies", &b->stream, err) ||
        agree_on_sizes(b, host, local_size, &same, err))
        return -1;
    if (!same)
        *ret_why = "the pods have different numbers of ranks";
    else if (host->size == local_size)
        *ret_why = "all ranks are in one pod";
    if (**ret_why)
        return 0;
    b->group = memory_group_of(host->rank, host->size, local_size);
    return host->fn->split(host, b->group.ranks[0], &b->comm, err);
}

void memory_buddies_close(struct memory_buddies *b)
{
    comm_close(b->comm);
    stream_close(b->stream);
    device_close(b->device);
    *b = (struct memory_buddies){0};
}

void memory_buddies_part(struct memory_buddies *b)
{
    comm_close(take(b->comm));
    b->group = (struct memory_group){.count = 1, .ranks = {b->group.ranks[b->group.me]}};
}

int64_t memory_buddies_bytes(const struct memory_buddies *b, int64_t payload_bytes)
{
    return b->group.count * memory_snapshot_bytes(payload_bytes);
}

int memory_buddies_lay_out(struct memory_buddies *b, void *memory, int64_t payload_bytes,
                           const struct memory_snapshot_id *id, struct error *err)
{
    struct memory_snapshot_id ids[MEMORY_GROUP_MOST];
    ids[b->group.me] = *id;
    if (b->comm && agree_gather(b->comm, b->stream, id, ids, sizeof *id, err))
        return -1;
    char *at = memory; /* its own come first: they are found whether there is a group or not */
    memory_snapshot_open(at, payload_bytes, id, &b->kept[b->group.me]);
    for (int member = 0; member < b->group.count; member++) {
        if (member == b->group.me)
            continue;
        at += memory_snapshot_bytes(payload_bytes);
        memory_snapshot_open(at, payload_bytes, &ids[member], &b->kept[member]);
    }
    return 0;
}

/* *slot: of this rank's memory, where the member's snapshot is or, -1, will be. */
static int send_one(struct memory_buddies *b, int member, int from, int64_t step, int *slot,
                    struct error *err)
{
    struct memory_snapshots *kept = &b->kept[member];
    const int64_t bytes = kept->payload_bytes;
    bool is_new = *slot < 0;
    void *payload =
        is_new ? memory_snapshot_begin(kept, slot) : memory_snapshot_payload(kept, *slot);
    b->comm->fn->broadcast(b->comm, b->stream, payload, bytes, from);
    if (stream_sync(b->stream, err))
        return -1;
    if (is_new)
        memory_snapshot_commit(kept, step, bytes);
    return 0;
}

int memory_buddies_exchange(struct memory_buddies *b, int64_t step, struct error *err)
{
    for (int member = 0; b->comm && member < b->group.count; member++) {
        int slot = member == b->group.me ? b->kept[member].newest : -1;
        if (send_one(b, member, member, step, &slot, err))
            return -1;
    }
    return 0;
}

int memory_buddies_fetch(struct memory_buddies *b, struct memory_found *found, struct error *err)
{
    for (int member = 0; b->comm && member < b->group.count; member++)
        if (found->from[member] >= 0 &&
            send_one(b, member, found->from[member], found->step, &found->slots[member], err))
            return -1;
    return 0;
}

void memory_buddies_keep(struct memory_buddies *b, const struct memory_found *found, int64_t step)
{
    for (int member = 0; member < b->group.count; member++)
        memory_snapshot_keep(&b->kept[member], found->step == step ? found->slots[member] : -1);
}
