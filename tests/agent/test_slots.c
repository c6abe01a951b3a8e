/* Which slots a rank holds, and the order of a step, for every number of ranks. */
#include "agent/shard/slots.h"
#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

enum { MOST = 17, MICRO_BATCHES = 3 };

static void each_slot_is_held_once(void **state)
{
    (void)state;
    for (int count = 1; count <= MOST; count++)
        for (int ranks = 1; ranks <= count; ranks++) {
            struct slots slots = {count, ranks};
            int seen[MOST] = {0}, most = 0;
            for (int rank = 0; rank < ranks; rank++) {
                int held = slots_held(slots, rank);
                assert_true(held >= 1);
                most = held > most ? held : most;
                for (int round = 0; round < slots_rounds(slots); round++) {
                    assert_int_equal(slots_is_idle(slots, rank, round), round >= held);
                    int slot = slots_of(slots, rank, round);
                    assert_in_range(slot, 0, count - 1);
                    seen[slot] += round < held;
                }
            }
            assert_int_equal(most, slots_rounds(slots)); /* no more rounds than needed */
            for (int slot = 0; slot < count; slot++)
                assert_int_equal(seen[slot], 1);
        }
}

/* The order in which (micro-batch, slot) are added up, as numbers. */
static int order(struct slots slots, bool each, int *added)
{
    int pending[MOST] = {0}, count = 0; /* micro-batches of a rank's slot, not yet added */
    for (int n = 0; n < slots_rounds(slots) * MICRO_BATCHES; n++) {
        struct slots_turn turn = slots_turn(slots, MICRO_BATCHES, each, n);
        assert_in_range(turn.micro_batch, 0, MICRO_BATCHES - 1);
        for (int rank = 0; rank < slots_width(slots, turn.round); rank++) {
            int name = turn.micro_batch * MOST + slots_of(slots, rank, turn.round);
            pending[rank] = pending[rank] * MOST * MICRO_BATCHES + name + 1;
            if (!turn.reduces)
                continue;
            added[count++] = pending[rank];
            pending[rank] = 0;
        }
    }
    return count;
}

static void the_order_knows_no_ranks(void **state)
{
    (void)state;
    for (int each = 0; each < 2; each++)
        for (int count = 1; count <= MOST; count++) {
            int calm[MOST * MICRO_BATCHES], other[MOST * MICRO_BATCHES];
            int length = order((struct slots){count, count}, each, calm);
            assert_int_equal(length, each ? count * MICRO_BATCHES : count);
            for (int ranks = 1; ranks < count; ranks++) {
                assert_int_equal(order((struct slots){count, ranks}, each, other), length);
                assert_memory_equal(other, calm, (size_t)length * sizeof *calm);
            }
        }
}

/* Each rank adds up a part of its own slice, and each part is one rank's. */
static void parts_lie_in_slices(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int group = 1; group <= ranks; group++) {
            int seen[MOST] = {0}, of_slice = ranks / group;
            for (int rank = 0; ranks % group == 0 && rank < ranks; rank++) {
                int part = slots_part(ranks, group, rank);
                assert_int_equal(part / of_slice, rank % group);
                assert_int_equal(part % of_slice, rank / group); /* the order of the replicas */
                assert_int_equal(seen[part]++, 0);
            }
        }
}

static void sums_are_made_in_place_where_each_rank_adds_once(void **state)
{
    (void)state;
    assert_true(slots_sum_in_place((struct slots){4, 4}, false));
    assert_false(slots_sum_in_place((struct slots){4, 4}, true));
    assert_false(slots_sum_in_place((struct slots){4, 3}, false));
    assert_false(slots_sum_in_place((struct slots){1, 1}, false));
}

static void a_piece_is_a_part_or_bounded(void **state)
{
    (void)state;
    assert_int_equal(slots_piece(1000, 4, true), 1000);
    assert_int_equal(slots_piece(1 << 20, 4, true), 256 << 10);
    assert_int_equal(slots_piece(1 << 20, 2, true), 512 << 10);
    assert_int_equal(slots_piece(1 << 20, 4, false), 1 << 20);
    assert_int_equal(slots_piece(1 << 21, 4, false), 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slot_is_held_once),
        cmocka_unit_test(the_order_knows_no_ranks),
        cmocka_unit_test(parts_lie_in_slices),
        cmocka_unit_test(sums_are_made_in_place_where_each_rank_adds_once),
        cmocka_unit_test(a_piece_is_a_part_or_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
