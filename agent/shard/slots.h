/* Reduction slots: a run of S slots is computed as if it had S ranks, whatever ranks it has, and so
 * comes to the same bits. A slot has the samples, the dropout and the place in every sum that rank
 * s of S ranks would have. Pure arithmetic.
 *
 * W <= S ranks hold the slots in turns, so slot s is rank s mod W's, in round s / W:
 *
 *   S = 8, W = 5      round 0: slots 0 1 2 3 4     round 1: slots 5 6 7, and ranks 3 and 4 idle
 *
 * An idle rank computes something all the same, as the others need it in their collectives; nobody
 * adds it. A round costs what a micro-batch costs: a step takes ceil(S / W) of them.
 *
 * The sum of a step. Let g(s, i) be the gradient of slot s in micro-batch i of A. Every element is
 * one chain of additions in fp32, in an order that knows no ranks:
 *
 *   mean = 1/S (... ((g(0, 0) + g(1, 0)) + ... + g(S - 1, 0)) + g(0, 1)) + ... + g(S - 1, A - 1))
 *
 * where each micro-batch is reduced; where slots add up their own first, with G(s) = g(s, 0) + ...
 * + g(s, A - 1) in that slot's own buffer:
 *
 *   mean = 1/S (... (G(0) + G(1)) + ... + G(S - 1))
 *
 * A chain, and no balanced tree, because a round adds the slots that follow those of the round
 * before: one sum of a slice's size is all that must be kept between rounds, whatever S and W are.
 * The owner of a slice gets each slot's part of it (all_to_all) and adds in this order: as many
 * bytes as a reduce_scatter moves.
 *
 * Sums over elements (norms) have no order at all: see kernels/exact_sum.h. */
#ifndef SHOAL_AGENT_SHARD_SLOTS_H
#define SHOAL_AGENT_SHARD_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* S and W, 1 <= ranks <= count. */
struct slots {
    int count, ranks;
};

/* Rounds of a micro-batch: ceil(S / W). */
int slots_rounds(struct slots slots);
/* Ranks that have a slot in the round: the first so many. */
int slots_width(struct slots slots, int round);
/* The slot of a rank in a round; idle ranks have that of their round before. */
int slots_of(struct slots slots, int rank, int round);
bool slots_is_idle(struct slots slots, int rank, int round);
/* How many slots a rank holds: those of its rounds 0 .. slots_held() - 1. */
int slots_held(struct slots slots, int rank);

/* What a step computes as its n-th, n from 0 to rounds * micro_batches - 1. */
struct slots_turn {
    int round;
    int micro_batch;
    bool reduces; /* its backward's gradients are added to the sum */
};
/* each: each micro-batch is reduced; else each slot's, once they are added up. */
struct slots_turn slots_turn(struct slots slots, int micro_batches, bool each, int n);

/* Whether backward's gradient may lie where the sum is made, if a slice is a whole unit: the other
 * slots' parts are added to it there, once a step. each: as in slots_turn(). Not so of
 * one rank, whose gradient is rounded to reduce_dtype on its way there. */
bool slots_sum_in_place(struct slots slots, bool each);

/* Elements of a part of `count` that a rank gets from each rank at once. What comes of all lies
 * side by side until it is added up: bounded, so that nobody keeps a second unit's gradient. */
enum { SLOTS_PIECE_BYTES = 4 << 20, SLOTS_HOST_PIECE_BYTES = 1 << 20 };
int64_t slots_piece(int64_t count, int element_bytes, bool is_host);

/* Which part of a unit's flat buffer, cut into W parts, a rank adds up: that lies in its own slice
 * (shard_layout.h), so that the ranks with copies of one slice divide it. group_size: ranks that
 * share a copy of the model, of `ranks`. */
int slots_part(int ranks, int group_size, int rank);
#endif
