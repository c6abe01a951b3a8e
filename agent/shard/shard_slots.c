/* Gradients with reduction slots (slots.h): the order of every sum is the slots', and not the
 * collectives'. */
#include "agent/shard/shard_internal.h"

#include <assert.h>

void shard_open_slots(struct shard *shard, struct comm *world)
{
    int count = shard->config.slots;
    if (count == 0)
        return;
    assert(count >= world->size && !shard->offload);
    shard->slots = (struct slots){count, world->size};
    shard->part = slots_part(world->size, shard->group_size, world->rank);
    shard->places = arena_array(shard->arena, int, world->size);
    for (int rank = 0; rank < world->size; rank++)
        shard->places[rank] = slots_part(world->size, shard->group_size, rank);
}

bool shard_reduces_each(bool accumulate_sharded, enum shard_strategy strategy)
{
    /* The size of the shard group must not matter: with one rank FULL_SHARD still reduces each. */
    return accumulate_sharded && strategy != NO_SHARD;
}

void shard_begin_turn(struct shard *shard, const struct slots_turn *turn)
{
    /* What a round has not reduced belongs to its slots: the next one may have fewer. */
    if (shard->turn_reduces)
        shard_reduce_pending(shard);
    shard->width = slots_width(shard->slots, turn->round);
    shard->turn_reduces = turn->reduces;
}

static int64_t part_count(const struct shard *shard, const struct unit *u)
{
    return u->layout->flat_count / shard->slots.ranks;
}

/* This rank's part, which lies in its slice. */
static float *part_of(const struct shard *shard, const struct unit *u)
{
    int of_slice = shard->slots.ranks / shard->group_size;
    return u->view.gradient + shard->part % of_slice * part_count(shard, u);
}

/* parts: of each rank's slot, side by side; from: of this rank's part. */
static void add_parts(struct shard *shard, struct unit *u, const void *parts, int64_t from,
                      int64_t count)
{
    const struct ops *ops = compute_ops(shard);
    enum dtype t = shard->config.reduce_dtype;
    float *sum = part_of(shard, u) + from;
    for (int rank = 0; rank < shard->width; rank++) {
        const void *part = (const char *)parts + (size_t)(rank * count) * dtype_bytes(t);
        if (rank > 0 || u->accumulated)
            ops->add(shard->reduces, DTYPE_F32, sum, t, part, count);
        else
            ops->cast(shard->reduces, DTYPE_F32, sum, t, part, count);
    }
}

int64_t shard_slots_piece(const struct shard *shard, const struct layout_unit *unit)
{
    return slots_piece(unit->flat_count / shard->slots.ranks,
                       (int)dtype_bytes(shard->config.reduce_dtype),
                       device_is_host(stream_device(shard->compute)));
}

void shard_add_slots(struct shard *shard, struct unit *u, const void *unsharded)
{
    enum dtype t = shard->config.reduce_dtype;
    int64_t count = part_count(shard, u), most = shard_slots_piece(shard, u->layout);
    if (!shard->received) {
        add_parts(shard, u, unsharded, 0, count);
        return;
    }
    for (int64_t from = 0; from < count; from += most) {
        int64_t now = from + most < count ? most : count - from;
        const char *send = (const char *)unsharded + (size_t)from * dtype_bytes(t);
        shard->reducer->fn->all_to_all(shard->reducer, shard->reduces, t, shard->received, send,
                                       now, count, shard->places);
        add_parts(shard, u, shard->received, from, now);
    }
}

void shard_end_slots(struct shard *shard, struct unit *u)
{
    if (!u->accumulated || u->is_mean || u->layout->flat_count == 0)
        return;
    const struct ops *ops = compute_ops(shard);
    int64_t count = part_count(shard, u);
    float *sum = part_of(shard, u);
    ops->scale(shard->reduces, DTYPE_F32, sum, 1.0F / (float)shard->slots.count, count);
    shard_name_unit(shard->replicas, u);
    if (shard->replicas)
        shard->replicas->fn->all_gather(shard->replicas, shard->reduces, DTYPE_F32,
                                        u->view.gradient, sum, count);
    shard_name_unit(shard->replicas, NULL);
    u->is_mean = true;
}
