/* The whole training run with ranks as threads: the same result whatever the layout, interrupted or
 * not. Where it goes on from, and how it stops: test_trainer_resume.c. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tests ---- */

#define WRAPPED "--auto_wrap_policy SIZE_BASED_WRAP "

/* ThreadSanitizer looks at threads, not at numbers, and takes minutes for what else takes seconds:
 * there a run over many layouts is one epoch, a batch smaller than the tutorial's, and of the
 * checkpoints that runs go on from some are left out. */
#ifdef __SANITIZE_THREAD__
enum { STOPS_APART = 5, CHECKPOINTS_APART = 3 };
#define LAYOUT_EPOCHS  "--epochs 1 "
#define TUTORIAL_BATCH "4"
#else
enum { STOPS_APART = 2, CHECKPOINTS_APART = 1 };
#define LAYOUT_EPOCHS  "--epochs 2 "
#define TUTORIAL_BATCH "64"
#endif

static void the_layout_does_not_change_the_losses(void **state)
{
    static const struct {
        int size;
        const char *flags;
    } layouts[] = {
        {1, "--sharding_strategy FULL_SHARD " WRAPPED},
        {2, "--sharding_strategy FULL_SHARD"},
        {3, "--sharding_strategy FULL_SHARD " WRAPPED},
        {4, "--sharding_strategy FULL_SHARD " WRAPPED "--min_num_params 100"},
        {4, "--sharding_strategy FULL_SHARD " WRAPPED
            "--forward_prefetch=off --backward_prefetch none --limit_all_gathers=off"},
        {4, "--sharding_strategy FULL_SHARD " WRAPPED "--backward_prefetch BACKWARD_POST"},
        {4, "--sharding_strategy SHARD_GRAD_OP " WRAPPED},
        {4, "--sharding_strategy NO_SHARD " WRAPPED},
        {4, "--sharding_strategy HYBRID_SHARD --shard_group_size 2 " WRAPPED},
        {4, "--sharding_strategy HYBRID_SHARD_ZERO2 --shard_group_size 2"},
        {2, "--cpu_offload " WRAPPED},
        {2, "--batch_size 3 --gradient_accumulation_steps 2"},
        {2, "--batch_size 2 --gradient_accumulation_steps 3 --accumulation_sync every " WRAPPED},
    };
    auto_arena struct arena *arena = arena_open();
    struct run two_epochs = {0}, whole = {0};
    runs_do(&two_epochs, arena, *state, 1, "");
    int steps = two_epochs.seen[0].last_step;
    assert_int_equal(steps, 2 * RUNS_TRAIN_ROWS / 12);
    assert_true(runs_step_loss(&two_epochs, steps - 1) <
                0.7 * runs_step_loss(&two_epochs, 0)); /* it learns */
    runs_do(&whole, arena, *state, 1, LAYOUT_EPOCHS "--sharding_strategy NO_SHARD");
    steps = whole.seen[0].last_step;
    for (size_t i = 0; i < array_length(layouts); i++) {
        struct run run = {0};
        runs_do(&run, arena, *state, layouts[i].size,
                arena_printf(arena, LAYOUT_EPOCHS "%s", layouts[i].flags));
        assert_int_equal(run.seen[0].last_step, steps);
        /* 1e-5: fp32 sums of 12 rows in another order, through 8 steps at most. */
        for (int s = 0; s < steps; s++)
            if (fabs(runs_step_loss(&run, s) - runs_step_loss(&whole, s)) > 1e-5)
                fail_msg("%d ranks, %s: step %d: %.9g, 1 rank: %.9g", layouts[i].size,
                         layouts[i].flags, s, runs_step_loss(&run, s), runs_step_loss(&whole, s));
        assert_true(fabs(run.seen[0].test_loss - whole.seen[0].test_loss) < 1e-5);
    }
}

/* bf16 has 8 bits: a loss of about 2 is off by less than 2^-8 of that, as roundings of many numbers
 * make up for each other. */
static void bf16_learns_as_fp32_does(void **state)
{
    static const struct {
        const char *optimizer, *flags;
    } rows[] = {
        {"", "--mixed_precision=bf16 --reduce_dtype=bf16"},
        {"--optim=adam --lr=0.002", "--mixed_precision=bf16-true"},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run exact = {0}, run = {0};
        const char *common = arena_printf(arena, "--max_steps=3 %s", rows[i].optimizer);
        runs_do(&exact, arena, *state, 1, common);
        runs_do(&run, arena, *state, 2,
                arena_printf(arena, "%s " WRAPPED "%s", common, rows[i].flags));
        assert_int_equal(run.seen[0].last_step, 3);
        for (int s = 0; s < 3; s++)
            assert_true(fabs(runs_step_loss(&run, s) - runs_step_loss(&exact, s)) < 0.005);
        assert_true(runs_step_loss(&run, 0) != runs_step_loss(&exact, 0));
    }
}

/* Reads a whole small file. The arena owns it. */
static const char *file_bytes(struct arena *arena, const char *path, size_t *ret_size)
{
    auto_free char *bytes = NULL;
    struct error err;
    assert_ok(file_read(path, 16 << 20, &bytes, ret_size, &err), &err);
    return arena_strndup(arena, bytes, *ret_size);
}

static void assert_same_file(struct arena *arena, const char *a, const char *b)
{
    size_t size_a, size_b;
    const char *bytes_a = file_bytes(arena, a, &size_a), *bytes_b = file_bytes(arena, b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
}

/* Interrupted after any step, in mid-epoch or at its end, and resumed: the same bits as never
 * interrupted. */
static void a_resumed_run_ends_with_the_same_bits(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    const char *common = "--preset mnist --num_train_epochs 2 " WRAPPED;
    const char *whole_model = arena_printf(arena, "%s/whole.safetensors", data);
    struct run whole = {0};
    runs_do(&whole, arena, data, 2, arena_printf(arena, "%s--save_model %s", common, whole_model));
    for (int stop = 1; stop < whole.seen[0].last_step; stop += STOPS_APART) {
        const char *dir = arena_printf(arena, "%s/ck%d", data, stop);
        const char *model = arena_printf(arena, "%s/part%d.safetensors", data, stop);
        struct run first = {0}, second = {.restarted = true};
        runs_do(&first, arena, data, 2,
                arena_printf(arena, "%s--max_steps %d --checkpoint_dir %s", common, stop, dir));
        assert_int_equal(first.seen[0].last_step, stop);
        runs_do(&second, arena, data, 2,
                arena_printf(arena, "%s--checkpoint_dir %s --save_model %s", common, dir, model));
        assert_int_equal(second.seen[0].resumed_step, stop);
        /* Sums of doubles in another grouping. */
        assert_true(fabs(second.seen[0].epoch_loss - whole.seen[0].epoch_loss) < 1e-12);
        assert_same_file(arena, whole_model, model);
    }
}

/* A checkpoint after every step, also after the last and short batch of an epoch: going on from any
 * of them gives the run that wrote it. */
static void every_checkpoint_leads_to_the_same_bits(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    const char *common = "--num_train_epochs 2 --batch_size 5 "; /* 24 rows a rank: 5 batches */
    const char *whole_model = arena_printf(arena, "%s/every.safetensors", data);
    struct run whole = {0};
    runs_do(&whole, arena, data, 2,
            arena_printf(arena, "%s--save_steps 1 --checkpoint_dir %s/every --save_model %s",
                         common, data, whole_model));
    assert_int_equal(whole.seen[0].last_step, 10);
    for (int step = 1; step <= 10; step += CHECKPOINTS_APART) {
        const char *model = arena_printf(arena, "%s/every%d.safetensors", data, step);
        struct run rest = {0};
        runs_do(&rest, arena, data, 2,
                arena_printf(
                    arena, "%s--resume_from_checkpoint %s/every/mnist_cnn-%dsteps --save_model %s",
                    common, data, step, model));
        assert_int_equal(rest.seen[0].resumed_step, step);
        assert_same_file(arena, whole_model, model);
    }
}

static void a_checkpoint_loads_at_any_world_size(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/any", (char *)*state);
    struct run whole = {0}, first = {0};
    runs_do(&whole, arena, *state, 1, "");
    runs_do(&first, arena, *state, 4,
            arena_printf(arena, WRAPPED "--max_steps 3 --checkpoint_dir %s", dir));
    static const struct {
        int size;
        const char *flags;
    } layouts[] = {{1, ""}, {2, WRAPPED}, {3, "--sharding_strategy NO_SHARD"}, {4, ""}};
    for (size_t i = 0; i < array_length(layouts); i++) {
        struct run second = {0};
        const char *one = arena_printf(arena, "%s/any/mnist_cnn-3steps", (char *)*state);
        runs_do(&second, arena, *state, layouts[i].size,
                arena_printf(arena, "%s --resume_from_checkpoint %s", layouts[i].flags, one));
        assert_int_equal(second.seen[0].resumed_step, 3);
        for (int s = 3; s < whole.seen[0].last_step; s++)
            assert_true(fabs(runs_step_loss(&second, s) - runs_step_loss(&whole, s)) < 1e-5);
    }
}

/* Of one file, as save_model writes it, and in another place. */
static void a_saved_model_is_begun_with(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    struct run first = {0}, second = {0};
    runs_do(&first, arena, data, 1,
            arena_printf(arena, "--max_steps=2 --save_model %s/net.safetensors", data));
    runs_do(&second, arena, data, 2,
            arena_printf(arena,
                         "--max_steps=1 --lr=0 --seed=7 --init_weights %s/net.safetensors "
                         "--save_model %s/net2.safetensors",
                         data, data));
    assert_same_file(arena, arena_printf(arena, "%s/net.safetensors", data),
                     arena_printf(arena, "%s/net2.safetensors", data));
}

/* The tutorial's ordering, at its own sizes: batch 64, four ranks. */
#define TUTORIAL "--preset mnist --max_steps 1 --eval_strategy no --batch_size " TUTORIAL_BATCH " "

static void sharding_saves_memory_in_the_tutorials_order(void **state)
{
    static const char *const flags[] = {
        TUTORIAL WRAPPED,
        TUTORIAL,
        TUTORIAL "--sharding_strategy NO_SHARD",
    };
    auto_arena struct arena *arena = arena_open();
    int64_t peak[array_length(flags)];
    for (size_t i = 0; i < array_length(flags); i++) {
        struct run run = {0};
        runs_do(&run, arena, *state, 4, flags[i]);
        peak[i] = run.seen[0].memory.peak_total_bytes;
    }
    assert_true(peak[0] < peak[1]);
    assert_true(peak[1] < peak[2]);
}

/* 47 samples are 48 on two ranks: each has as many. */
static void an_epoch_that_is_filled_up_is_one(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct run run = {0};
    runs_do(&run, arena, *state, 2, "--train_size 47 --eval_strategy no");
    assert_int_equal(run.seen[0].steps, 8);
    assert_true(run.seen[0].epoch == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_learns_as_fp32_does),
        cmocka_unit_test(the_layout_does_not_change_the_losses),
        cmocka_unit_test(a_resumed_run_ends_with_the_same_bits),
        cmocka_unit_test(every_checkpoint_leads_to_the_same_bits),
        cmocka_unit_test(a_checkpoint_loads_at_any_world_size),
        cmocka_unit_test(a_saved_model_is_begun_with),
        cmocka_unit_test(sharding_saves_memory_in_the_tutorials_order),
        cmocka_unit_test(an_epoch_that_is_filled_up_is_one),
    };
    return cmocka_run_group_tests(tests, runs_make_images, runs_remove);
}
