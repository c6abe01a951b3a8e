#include "agent/shard/slots.h"

#include <assert.h>

int slots_rounds(struct slots slots)
{
    assert(slots.ranks >= 1 && slots.ranks <= slots.count);
    return (slots.count + slots.ranks - 1) / slots.ranks;
}

int slots_width(struct slots slots, int round)
{
    int left = slots.count - round * slots.ranks;
    return left < slots.ranks ? left : slots.ranks;
}

bool slots_is_idle(struct slots slots, int rank, int round)
{
    return rank >= slots_width(slots, round);
}

int slots_of(struct slots slots, int rank, int round)
{
    /* Only the last round has idle ranks, so there is a round before. */
    return (slots_is_idle(slots, rank, round) ? round - 1 : round) * slots.ranks + rank;
}

int slots_held(struct slots slots, int rank)
{
    int rounds = slots_rounds(slots);
    return slots_is_idle(slots, rank, rounds - 1) ? rounds - 1 : rounds;
}

struct slots_turn slots_turn(struct slots slots, int micro_batches, bool each, int n)
{
    int rounds = slots_rounds(slots);
    if (each)
        return (struct slots_turn){n % rounds, n / rounds, true};
    int micro_batch = n % micro_batches;
    return (struct slots_turn){n / micro_batches, micro_batch, micro_batch + 1 == micro_batches};
}

bool slots_sum_in_place(struct slots slots, bool each)
{
    return slots.ranks > 1 && slots.count == slots.ranks && !each;
}

int64_t slots_piece(int64_t count, int element_bytes, bool is_host)
{
    int64_t most = (is_host ? SLOTS_HOST_PIECE_BYTES : SLOTS_PIECE_BYTES) / element_bytes;
    return count < most ? count : most;
}

int slots_part(int ranks, int group_size, int rank)
{
    return rank % group_size * (ranks / group_size) + rank / group_size;
}
