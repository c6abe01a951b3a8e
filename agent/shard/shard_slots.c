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

bool shard_reduces_each(const struct shard_config *config)
{
    /* The size of the shard group must not matter: with one rank FULL_SHARD still reduces each. */
    return config->accumulate_sharded && config->strategy != NO_SHARD;
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

void shard_add_slots(struct shard *shard, struct unit *u, const void *unsharded)
{
    const struct ops *ops = compute_ops(shard);
    enum dtype t = shard->config.reduce_dtype;
    int64_t count = part_count(shard, u);
    const void *parts = unsharded;
    float *sum = part_of(shard, u);
    if (shard->received) {
        shard->reducer->fn->all_to_all(shard->reducer, shard->reduces, t, shard->received,
                                       unsharded, count, shard->places);
        parts = shard->received;
    }
    for (int rank = 0; rank < shard->width; rank++) {
        const void *part = (const char *)parts + (size_t)(rank * count) * dtype_bytes(t);
        if (rank > 0 || u->accumulated)
            ops->add(shard->reduces, DTYPE_F32, sum, t, part, count);
        else
            ops->cast(shard->reduces, DTYPE_F32, sum, t, part, count);
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
