/* Whether ranks save to memory at all: they have some that outlives them, and their machines have
 * room for it. */
#include "agent/launch/rank_memory.h"
#include "tests/agent/run_memory.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <fcntl.h>
#include <string.h>

static void without_memory_nothing_is_saved(void **state)
{
    static const struct {
        const char *flags;
        bool has_memory;
        bool is_short;
        const char *notice; /* or error */
        bool fails;
        bool is_refused; /* to the second rank */
    } rows[] = {
        {"", true, false,
         "there will be no checkpoints in memory (checkpoint.memory_every_steps): rank 1: memory "
         "that outlives the rank",
         false, true},
        {"--memory_every_steps=2", true, false,
         "checkpoint.memory_every_steps (0 saves none): rank 1: memory that outlives the rank",
         true, true},
        {"", false, false, "", false, false},
        {"--memory_every_steps=0", true, true, "", false, false},
        {"--memory_every_steps=2", false, false,
         "there will be no checkpoints in memory (checkpoint.memory_every_steps): rank 0: no "
         "launcher keeps memory for it: runtime.max_restarts is 0, or a warning said why",
         false, false},
        {"", true, true, "there will be no checkpoints in memory", false, false},
        {"--memory_every_steps=2", true, true,
         "checkpoint.memory_every_steps (0 saves none): rank 0: memory checkpoints of", true,
         false},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct config *config = arena_new(arena, struct config);
        runs_configure_language(
            config, arena, *state, 2,
            arena_printf(arena, "--device=cpu --auto_wrap_policy=NO_WRAP --max_steps=2 %s",
                         rows[i].flags));
        struct run run = {.config = &config->value, .size = 2};
        if (rows[i].is_short)
            run.memory_left[0][MEMORY_OF_MACHINE] = run.memory_left[1][MEMORY_OF_MACHINE] =
                (struct memory_bound){1, 1000};
        if (rows[i].has_memory)
            run_memory_open(run.memory_fds, 2);
        if (rows[i].is_refused)
            assert_int_equal(fcntl(run.memory_fds[1], F_ADD_SEALS, F_SEAL_GROW), 0);
        runs_start(&run);
        if (rows[i].has_memory) {
            assert_int_equal(rank_memory_used(run.memory_fds[0]), 0);
            run_memory_close(run.memory_fds, 2);
        }
        if (rows[i].fails)
            assert_fails(run.result[1], &run.err[1], ERR_MEMORY, rows[i].notice);
        else
            assert_ok(run.result[1], &run.err[1]);
        if (!rows[i].fails && (!strstr(run.seen[0].notice, rows[i].notice) ||
                               (run.seen[0].notice[0] != 0) != (rows[i].notice[0] != 0)))
            fail_msg("row %zu: %s", i, run.seen[0].notice);
    }
}

/* Whether two ranks save to memory with so much left of their machine or machines. */
static bool saves(struct arena *arena, const char *data, const char *flags, int local_size,
                  const uint64_t machines[2], int64_t left)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    runs_configure_language(config, arena, data, 2,
                            arena_printf(arena, "--device=cpu --max_steps=1 %s", flags));
    *run =
        (struct run){.config = &config->value, .size = 2, .local_sizes = {local_size, local_size}};
    for (int rank = 0; rank < 2; rank++) {
        run->memory_left[rank][MEMORY_OF_MACHINE] = (struct memory_bound){machines[rank], left};
        run->memory_left[rank][MEMORY_OF_CONTAINER] = (struct memory_bound){0, INT64_MAX};
    }
    run_memory_open(run->memory_fds, 2);
    runs_start(run);
    bool is_on = rank_memory_used(run->memory_fds[0]) > 0;
    run_memory_close(run->memory_fds, 2);
    return is_on;
}

/* Ranks of several launchers share a machine as those of one do; what is copied to go to disk, or
 * comes from there, counts. */
static void room_is_for_all_that_share_it(void **state)
{
    static const struct {
        const char *name;
        int local_size;
        uint64_t machines[2];
        int parts, of; /* of what one launcher's two ranks need */
    } rows[] = {
        {"one launcher", 2, {1, 1}, 1, 1},
        {"two launchers of one machine", 1, {1, 1}, 1, 1},
        {"two machines", 1, {1, 2}, 1, 2},
        {"a launcher whose machine has no name", 2, {0, 0}, 1, 1},
        {"two of them", 1, {0, 0}, 1, 2},
    };
    const char *dir = *state;
    auto_arena struct arena *arena = arena_open();
    enum { NEAR = 1 << 12 };
    /* The least that is enough, of one launcher. */
    int64_t short_of = 0, enough = 1 << 27;
    assert_true(saves(arena, dir, "", 2, rows[0].machines, enough));
    while (enough - short_of > NEAR) {
        int64_t middle = short_of + (enough - short_of) / 2;
        *(saves(arena, dir, "", 2, rows[0].machines, middle) ? &enough : &short_of) = middle;
    }
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t it = enough * rows[i].parts / rows[i].of;
        if (!saves(arena, dir, "", rows[i].local_size, rows[i].machines, it + NEAR) ||
            saves(arena, dir, "", rows[i].local_size, rows[i].machines, it - NEAR))
            fail_msg("%s: not %lld bytes", rows[i].name, (long long)it);
    }
    static const char *const disks[] = {"--checkpoint_dir", "--resume_from_checkpoint",
                                        "--init_weights"};
    for (size_t i = 0; i < array_length(disks); i++) {
        const char *flags = arena_printf(arena, "%s=%s/none-%zu", disks[i], dir, i);
        if (saves(arena, dir, flags, 2, rows[0].machines, enough + NEAR) ||
            !saves(arena, dir, flags, 2, rows[0].machines, 2 * enough))
            fail_msg("%s is not counted", disks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_saved),
        cmocka_unit_test(room_is_for_all_that_share_it),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
