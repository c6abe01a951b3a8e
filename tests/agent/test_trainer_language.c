/* Language models trained whole, with ranks as threads: the same losses whatever the layout, and
 * the same bits whatever is recomputed, moved, or interrupted. */
#include "tests/agent/checkpoints.h"
#include "tests/agent/runs.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EPOCH_STEPS = (RUNS_WINDOWS + 11) / 12, STEPS = 2 * EPOCH_STEPS };

#define BY_SIZE "--auto_wrap_policy SIZE_BASED_WRAP --min_num_params 1000 "

/* 2e-5: fp32 sums in another order, through 8 steps of AdamW. */
static void assert_same_losses(const struct run *run, const struct run *whole, const char *flags)
{
    assert_int_equal(run->seen[0].last_step, STEPS);
    for (int rank = 0; rank < run->size; rank++)
        for (int s = 0; s < STEPS; s++)
            if (!(fabs(run->seen[rank].loss[s] - whole->seen[0].loss[s]) < 2e-5))
                fail_msg("%d ranks, %s: step %d: %.9g, 1 rank: %.9g", run->size, flags, s,
                         run->seen[rank].loss[s], whole->seen[0].loss[s]);
}

static void the_layout_does_not_change_the_losses(void **state)
{
    static const struct {
        int size;
        const char *flags;
    } layouts[] = {
        {1, "--sharding_strategy FULL_SHARD"},
        {2, "--sharding_strategy FULL_SHARD"},
        {3, "--sharding_strategy FULL_SHARD"},
        {4, "--sharding_strategy FULL_SHARD"},
        {4, "--sharding_strategy FULL_SHARD --auto_wrap_policy NO_WRAP"},
        {4, "--sharding_strategy FULL_SHARD " BY_SIZE},
        {2,
         "--sharding_strategy FULL_SHARD --forward_prefetch=off --backward_prefetch BACKWARD_POST"},
        {2, "--sharding_strategy SHARD_GRAD_OP"},
        {3, "--sharding_strategy NO_SHARD"},
        {4, "--sharding_strategy HYBRID_SHARD --shard_group_size 2"},
        {4, "--sharding_strategy HYBRID_SHARD_ZERO2 --shard_group_size 2"},
        {2, "--cpu_offload"},
        {2, "--batch_size 3 --gradient_accumulation_steps 2"},
        {2, "--batch_size 2 --gradient_accumulation_steps 3 --accumulation_sync every"},
        {2, "--activation_checkpointing full"},
        {4, "--activation_checkpointing full " BY_SIZE},
        {2, "--activation_checkpointing selective --offload_activations"},
    };
    auto_arena struct arena *arena = arena_open();
    struct run whole = {0};
    runs_do_language(&whole, arena, *state, 1, "--sharding_strategy NO_SHARD");
    assert_int_equal(whole.seen[0].last_step, STEPS);
    assert_true(fabs(whole.seen[0].loss[0] - log(64)) < 0.1); /* it begins with a guess ... */
    assert_true(whole.seen[0].loss[STEPS - 1] < 0.9 * whole.seen[0].loss[0]); /* ... and learns */
    for (size_t i = 0; i < array_length(layouts); i++) {
        struct run run = {0};
        runs_do_language(&run, arena, *state, layouts[i].size, layouts[i].flags);
        assert_same_losses(&run, &whole, layouts[i].flags);
    }
}

/* What is kept, computed again or put away changes no bit. */
static void sparing_memory_changes_no_bit(void **state)
{
    static const char *const flags[] = {
        "--activation_checkpointing full",
        "--activation_checkpointing selective",
        "--offload_activations",
        "--activation_checkpointing full --offload_activations --activation_loading_horizon 1",
    };
    auto_arena struct arena *arena = arena_open();
    struct run kept = {0};
    runs_do_language(&kept, arena, *state, 2, "");
    for (size_t i = 0; i < array_length(flags); i++) {
        struct run run = {0};
        runs_do_language(&run, arena, *state, 2, flags[i]);
        assert_memory_equal(run.seen[0].loss, kept.seen[0].loss, sizeof run.seen[0].loss);
        if (i == 0) /* and it does spare memory */
            assert_true(run.seen[0].memory.peak_bytes[MEMORY_ACTIVATION] <
                        kept.seen[0].memory.peak_bytes[MEMORY_ACTIVATION]);
    }
}

/* Stopped after any step, within an epoch or at its end, and resumed. */
static void a_resumed_run_goes_on_with_the_same_bits(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    struct run whole = {0};
    runs_do_language(&whole, arena, data, 2, "");
    for (int stop = 1; stop < STEPS; stop++) {
        const char *dir = arena_printf(arena, "%s/ck%d", data, stop);
        /* the schedule is the whole run's: decay_steps is what max_steps would change */
        const char *flags = arena_printf(arena, "--checkpoint_dir %s --decay_steps %d", dir, STEPS);
        struct run first = {0}, second = {.restarted = true};
        runs_do_language(&first, arena, data, 2,
                         arena_printf(arena, "%s --max_steps %d", flags, stop));
        runs_do_language(&second, arena, data, 2, flags);
        assert_int_equal(second.seen[0].resumed_step, stop);
        for (int s = stop; s < STEPS; s++)
            if (second.seen[0].loss[s] != whole.seen[0].loss[s])
                fail_msg("stopped at %d, step %d: %.17g, uninterrupted: %.17g", stop, s,
                         second.seen[0].loss[s], whole.seen[0].loss[s]);
    }
}

/* As Transformers' Trainer counts: of epochs of 4 steps, rounded up. What is done is what the whole
 * run does first, and can be gone on from. */
static void a_part_of_an_epoch_is_some_of_its_steps(void **state)
{
    static const struct {
        const char *epochs;
        int steps;
    } rows[] = {{"0.01", 1}, {"0.99", 4}, {"1.5", 6}};
    auto_arena struct arena *arena = arena_open();
    struct run whole = {0};
    runs_do_language(&whole, arena, *state, 2, "");
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *flags = arena_printf(arena, "--checkpoint_dir %s/part%zu --decay_steps %d",
                                         (char *)*state, i, STEPS);
        struct run first = {0}, second = {.restarted = true};
        runs_do_language(&first, arena, *state, 2,
                         arena_printf(arena, "%s --epochs %s", flags, rows[i].epochs));
        assert_int_equal(first.seen[0].last_step, rows[i].steps);
        assert_int_equal(first.seen[0].facts.steps, rows[i].steps);
        runs_do_language(&second, arena, *state, 2, flags);
        assert_int_equal(second.seen[0].resumed_step, rows[i].steps);
        for (int s = 0; s < STEPS; s++)
            assert_true((s < rows[i].steps ? first : second).seen[0].loss[s] ==
                        whole.seen[0].loss[s]);
    }
}

/* {epoch} counts from 1, and what is saved at an epoch's end stands at it. */
static void checkpoints_tell_their_epoch(void **state)
{
    static const char *const names[] = {"e-001-gs-000002", "e-001-gs-000004", "e-002-gs-000006",
                                        "e-002-gs-000008"};
    auto_arena struct arena *arena = arena_open();
    struct run run = {0};
    runs_do_language(&run, arena, *state, 2,
                     arena_printf(arena,
                                  "--checkpoint_dir %s/named --save_steps 2 "
                                  "--name_format e-{epoch:03}-gs-{step:06}",
                                  (char *)*state));
    assert_int_equal(run.seen[0].saves, array_length(names));
    for (size_t i = 0; i < array_length(names); i++)
        assert_int_equal(access(arena_printf(arena, "%s/named/%s", (char *)*state, names[i]), F_OK),
                         0);
}

/* One that ends at the middle of an epoch is evaluated there once. */
static void the_end_is_evaluated_once(void **state)
{
    static const struct {
        int max_steps, tests;
    } rows[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {6, 3}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct run run = {0};
        runs_do_language(&run, arena, *state, 1,
                         arena_printf(arena,
                                      "--eval_strategy half_epoch --eval_split eval --dataset %s "
                                      "--max_steps %d",
                                      (char *)*state, rows[i].max_steps));
        assert_int_equal(run.seen[0].tests, rows[i].tests);
    }
}

/* A finished run's directory also has its export, a folder "model": it is no
 * checkpoint for that. */
static void a_finished_runs_directory_is_gone_on_from(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/finished", (char *)*state);
    struct run first = {0}, second = {0};
    runs_do_language(
        &first, arena, *state, 1,
        arena_printf(arena, "--max_steps 2 --checkpoint_dir %s --save_model auto", dir));
    assert_int_equal(access(arena_printf(arena, "%s/model/config.json", dir), F_OK), 0);
    runs_do_language(&second, arena, *state, 1,
                     arena_printf(arena, "--max_steps 3 --resume_from_checkpoint %s", dir));
    assert_int_equal(second.seen[0].resumed_step, 2);
}

/* schedule.resume=checkpoint: what the flags say of the schedule does not count, and a run that
 * does not know its own end goes on towards the one it had. */
static void the_schedule_of_the_checkpoint_wins(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    const char *dir = arena_printf(arena, "%s/schedule", data);
    struct run whole = {0}, first = {0}, second = {0}, other = {0};
    runs_do_language(&whole, arena, data, 1, ""); /* a cosine from 0.01 */
    runs_do_language(
        &first, arena, data, 1,
        arena_printf(arena, "--decay_steps %d --max_steps 3 --checkpoint_dir %s", STEPS, dir));
    const char *flags =
        arena_printf(arena, "--resume %s/llama-3steps --lr 0.5 --lr_decay_style linear", dir);
    runs_do_language(&second, arena, data, 1,
                     arena_printf(arena, "%s --schedule.resume checkpoint", flags));
    for (int s = 3; s < STEPS; s++)
        assert_true(second.seen[0].loss[s] == whole.seen[0].loss[s]);
    assert_string_equal(second.seen[0].differs, "");
    runs_do_language(&other, arena, data, 1, flags);
    assert_non_null(strstr(other.seen[0].differs, "optimizer.lr: it had 0.01, this one has 0.5"));
    assert_non_null(
        strstr(other.seen[0].differs, "schedule.type: it had cosine, this one has linear"));
    assert_true(other.seen[0].loss[STEPS - 1] != whole.seen[0].loss[STEPS - 1]);
}

/* What another model or optimizer saved is refused, before the older checkpoints are tried; what
 * may change is not. */
static void another_models_checkpoint_is_refused(void **state)
{
    static const struct {
        const char *flags, *fails; /* NULL: it goes on */
    } rows[] = {
        {"--num_hidden_layers 2", "llama-2steps: saved from another model or optimizer: "
                                  "num_hidden_layers 2 (saved: 3); give what was saved"},
        {"--num_attention_heads 8 --head_dim 4 --num_key_value_heads 4",
         "num_attention_heads 8 (saved: 4)"},
        {"--rotary_emb_base 500000", "rope_theta 500000.0 (saved: 10000.0)"},
        {"--tie_word_embeddings true", "tie_word_embeddings true (saved: false)"},
        {"--optimizer.name sgd", "optimizer.name sgd (saved: adamw)"},
        {"--num_hidden_layers 4", "num_hidden_layers 4 (saved: 3)"},
        {"--lr 0.5 --attention_dropout 0.1 --initializer_range 0.5 --weight_decay 0.3", NULL},
    };
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/kind", (char *)*state);
    struct run first = {0};
    runs_do_language(&first, arena, *state, 1,
                     arena_printf(arena, "--max_steps 2 --save_steps 1 --checkpoint_dir %s", dir));
    for (size_t i = 0; i < array_length(rows); i++) {
        struct config config;
        runs_configure_language(
            &config, arena, *state, 2,
            arena_printf(arena, "%s --max_steps 2 --resume %s", rows[i].flags, dir));
        struct run run = {.config = &config.value, .size = 2};
        runs_start(&run);
        for (int rank = 0; rank < 2; rank++)
            if (rows[i].fails)
                assert_fails(run.result[rank], &run.err[rank], ERR_CONFIG, rows[i].fails);
            else
                assert_ok(run.result[rank], &run.err[rank]);
        assert_int_equal(run.seen[0].resumed_step, rows[i].fails ? 0 : 2);
    }
}

/* In one line, not by each tensor that is missing. */
static void a_checkpoint_of_pictures_is_refused(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *pictures = arena_printf(arena, "%s/pictures", (char *)*state);
    struct error err;
    assert_ok(checkpoints_save(pictures, 1, 1, NULL, &err), &err);
    struct config config;
    runs_configure_language(&config, arena, *state, 2,
                            arena_printf(arena, "--max_steps 2 --resume %s", pictures));
    struct run run = {.config = &config.value, .size = 2};
    runs_start(&run);
    for (int rank = 0; rank < 2; rank++)
        assert_fails(run.result[rank], &run.err[rank], ERR_CONFIG,
                     "net-100steps: saved from another model or optimizer: a language model "
                     "(saved: mnist_cnn, as there is no config.json");
}

static void a_checkpoint_goes_on_at_any_world_size(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    struct run whole = {0};
    runs_do_language(&whole, arena, data, 1, "");
    const char *dir = arena_printf(arena, "%s/worlds", data);
    const char *flags =
        arena_printf(arena, "--decay_steps %d --resume %s/llama-3steps", STEPS, dir);
    struct run first = {0};
    runs_do_language(
        &first, arena, data, 3,
        arena_printf(arena, "--decay_steps %d --max_steps 3 --checkpoint_dir %s", STEPS, dir));
    auto_free char *config = NULL, *path = xasprintf("%s/llama-3steps/config.json", dir);
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &config, &bytes, &err), &err);
    assert_non_null(strstr(config, "\"LlamaForCausalLM\""));
    for (int size = 1; size <= 4; size++) {
        struct run run = {0};
        runs_do_language(&run, arena, data, size, flags);
        assert_int_equal(run.seen[0].resumed_step, 3);
        for (int s = 3; s < STEPS; s++)
            assert_true(fabs(run.seen[0].loss[s] - whole.seen[0].loss[s]) < 2e-5);
    }
}

/* A step takes what the one before gave back: batches, activations, gathered units and all. */
static void no_step_after_the_first_asks_for_memory(void **state)
{
    static const char *const flags[] = {
        "--eval_strategy no",
        "--eval_strategy no --mixed_precision bf16 --reduce_dtype bf16",
        "--eval_strategy no --activation_checkpointing full --offload_activations",
        "--eval_strategy no --batch_size 2 --gradient_accumulation_steps 3",
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(flags); i++) {
        struct run run = {0};
        runs_do_language(&run, arena, *state, 2, flags[i]);
        for (int rank = 0; rank < 2; rank++) /* an epoch's last batch is a shorter one */
            world_assert_no_fresh_blocks(run.seen[rank].fresh_blocks, EPOCH_STEPS - 1, flags[i]);
    }
}

/* Of the norm, and of all else: how many targets the next step has on all ranks comes with the sums
 * of this one, so that the host waits once a step. Only an epoch's first step asks for it alone. */
static void ranks_sum_up_twice_a_step(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct run run = {0};
    runs_do_language(&run, arena, *state, 2, "--sharding_strategy FULL_SHARD --eval_strategy no");
    assert_int_equal(run.seen[0].last_step, STEPS);
    for (int s = 1; s < EPOCH_STEPS; s++)
        assert_int_equal(run.seen[0].all_reduces[s] - run.seen[0].all_reduces[s - 1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_does_not_change_the_losses),
        cmocka_unit_test(sparing_memory_changes_no_bit),
        cmocka_unit_test(a_resumed_run_goes_on_with_the_same_bits),
        cmocka_unit_test(a_part_of_an_epoch_is_some_of_its_steps),
        cmocka_unit_test(checkpoints_tell_their_epoch),
        cmocka_unit_test(the_end_is_evaluated_once),
        cmocka_unit_test(a_finished_runs_directory_is_gone_on_from),
        cmocka_unit_test(the_schedule_of_the_checkpoint_wins),
        cmocka_unit_test(another_models_checkpoint_is_refused),
        cmocka_unit_test(a_checkpoint_of_pictures_is_refused),
        cmocka_unit_test(a_checkpoint_goes_on_at_any_world_size),
        cmocka_unit_test(no_step_after_the_first_asks_for_memory),
        cmocka_unit_test(ranks_sum_up_twice_a_step),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
