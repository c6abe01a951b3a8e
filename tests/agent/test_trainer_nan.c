/* Gradients that are no numbers: each nan_policy, with two ranks as threads. */
#include "tests/agent/runs.h"
#include "tests/support.h"

enum { STEPS = 8 };

/* Each update makes the weights a billion times larger, until no gradient is a number. */
#define DIVERGES                                                                                   \
    "--sharding_strategy FULL_SHARD --optim sgd --lr 1e6 --weight_decay 1000 --warmup_steps 0 "    \
    "--max_steps 8 "

/* Told and gone on with, it never ends. Skipped, the weights stay as the last update left them: no
 * better, but for as many steps. */
static void told_or_skipped_it_goes_on(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct run warned = {0}, skipped = {0};
    runs_do_language(&warned, arena, *state, 2, DIVERGES);
    runs_do_language(&skipped, arena, *state, 2, DIVERGES "--nan_policy skip");
    int64_t without_number = warned.seen[0].nonfinite_steps;
    assert_in_range(without_number, 1, STEPS - 1);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(warned.seen[rank].last_step, STEPS);
        assert_int_equal(warned.seen[rank].nonfinite_steps, without_number);
        assert_int_equal(warned.seen[rank].skipped_steps, 0);
        assert_int_equal(skipped.seen[rank].last_step, STEPS);
        assert_int_equal(skipped.seen[rank].nonfinite_steps, without_number);
        assert_int_equal(skipped.seen[rank].skipped_steps, without_number);
    }
}

/* Every rank ends, with the same error, which is no configuration's. */
static void aborted_all_ranks_end_alike(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct run warned = {0};
    runs_do_language(&warned, arena, *state, 2, DIVERGES);
    int first = STEPS + 1 - (int)warned.seen[0].nonfinite_steps;
    runs_configure_language(&config, arena, *state, 2, DIVERGES "--nan_policy abort");
    struct run run = {.config = &config.value, .size = 2};
    runs_start(&run);
    for (int rank = 0; rank < 2; rank++) {
        assert_fails(run.result[rank], &run.err[rank], ERR_DIVERGED,
                     arena_printf(arena, "step %d: the gradient's norm is no number", first));
        assert_true(run.err[rank].shared);
        assert_int_equal(run.seen[rank].last_step, first - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_or_skipped_it_goes_on),
        cmocka_unit_test(aborted_all_ranks_end_alike),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
