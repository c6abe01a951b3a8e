/* What of a model's units lies in a symmetric window (comm_nccl.h), and where. Pure arithmetic,
 * with the same result on every rank of the shard group: a unit's slices are equally long on all.
 *
 * Small units alone: what a window saves of a collective is a matter of its latency. Published for
 * 8 H100 (NVIDIA/Megatron-LM#5596, #5655): all-gathers of 2 MiB 1.86 times as fast, 8 MiB 1.59, 32
 * MiB 1.25, 128 MiB 1.06; reduce-scatters alike.
 *
 * A slice has a place of its own. A buffer for a whole unit has one where the unit keeps it, that
 * is the root or, without resharding, every unit. Other units take turns at two places, each as
 * large as the largest of them: as many as are unsharded at once. A unit that finds both taken lies
 * outside then. All ranks find the same: between ranks a unit's collectives have one order, and a
 * place is taken before its collective and given back after it (shard_internal.h). */
#ifndef SHOAL_AGENT_SHARD_WINDOW_PLAN_H
#define SHOAL_AGENT_SHARD_WINDOW_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WINDOW_UNIT_BYTES = 32 << 20,
    WINDOW_TURNS = 2,
    WINDOW_ALIGN = 256,       /* bytes */
    WINDOW_GRANULE = 2 << 20, /* bytes; NCCL's memory comes in such pieces (nccl_api.h) */
};

/* Of one communicator's window. Bytes are those of an element; 0: no such buffer lies there. */
struct window_rules {
    int group_size;
    int message; /* as sent: a unit is small if all of it takes less than WINDOW_UNIT_BYTES */
    int slice;   /* of each unit's slice */
    int buffer;  /* of each unit's whole buffer */
    bool keeps;  /* each unit keeps that */
    int shared;  /* of a whole buffer that all use, one after the other */
    int scratch; /* likewise of a slice */
};

/* What gathers need: the slices that are sent, and what they become. value: bytes of an element. */
struct window_rules window_rules_of_gathers(int group_size, int value, bool reshards);
/* What reductions need. reduction: bytes of an element as sent. In fp32 the gradients of a unit are
 * reduced where backward has written them; else they are packed first, one unit after the
 * other. */
struct window_rules window_rules_of_reductions(int group_size, int reduction);

enum { WINDOW_OUTSIDE = -1, WINDOW_IN_TURN = -2 };
struct window_place {
    bool is_inside;
    int64_t slice, buffer; /* offset; WINDOW_OUTSIDE; of a buffer also WINDOW_IN_TURN */
};

struct window_plan {
    int64_t bytes; /* in all, whole granules; 0: nothing lies there */
    int units;     /* that are inside */
    int64_t turns[WINDOW_TURNS], shared, scratch; /* offsets; WINDOW_OUTSIDE */
    int64_t slice_bytes, kept_bytes; /* of all slices, and of buffers with places of their own */
};

/* flat_counts[count]: elements of each unit, multiples of group_size; the root first; 0: it lies
 * outside. ret_places: [count], or NULL. */
void window_plan_make(const struct window_rules *rules, const int64_t *flat_counts, int count,
                      struct window_plan *ret_plan, struct window_place *ret_places);
#endif
