/* Where a training run stops and goes on from, with ranks as threads: what it was asked, what it
 * finds, and what it says. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static void a_stop_on_one_rank_saves_and_stops_all(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/stop", (char *)*state);
    struct config config;
    runs_configure(&config, arena, *state, 3,
                   arena_printf(arena, "--epochs 10 --eval_strategy no --checkpoint_dir %s", dir));
    struct run run = {.config = &config.value, .size = 3};
    run.seen[2].stop_at_step = 7;
    runs_start(&run);
    for (int rank = 0; rank < 3; rank++) {
        assert_fails(run.result[rank], &run.err[rank], ERR_CANCELLED, "stopped at step 10");
        assert_int_equal(run.seen[rank].last_step, 10);
    }
    struct run second = {.restarted = true};
    runs_do(&second, arena, *state, 3, arena_printf(arena, "--epochs 3 --checkpoint_dir %s", dir));
    assert_int_equal(second.seen[0].resumed_step, 10);
    assert_int_equal(second.seen[0].last_step, 12);
}

/* It is left out, and comes first when the run goes on: at its own step, and with its own loss. */
static void a_stop_in_an_evaluation_leaves_it_for_later(void **state)
{
    static const struct {
        const char *flags;
        int step, tests; /* evaluations of the whole run */
    } rows[] = {{"--epochs 2", 4, 2},
                {"--epochs 2 --eval_strategy steps --eval_steps 3", 3, 2},
                {"--epochs 2 --eval_strategy half_epoch", 2, 4}};
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *dir = arena_printf(arena, "%s/late%zu", (char *)*state, i);
        struct run whole = {0}, second = {.restarted = true};
        runs_do(&whole, arena, *state, 3, rows[i].flags);
        assert_int_equal(whole.seen[0].tests, rows[i].tests);
        const char *flags = arena_printf(arena, "%s --checkpoint_dir %s", rows[i].flags, dir);
        struct config config;
        runs_configure(&config, arena, *state, 3, flags);
        struct run first = {.config = &config.value, .size = 3};
        first.seen[1].stops_in_evaluation = true;
        runs_start(&first);
        assert_fails(first.result[0], &first.err[0], ERR_CANCELLED,
                     arena_printf(arena, "stopped at step %d", rows[i].step));
        assert_int_equal(first.seen[0].tests, 0);
        assert_non_null(strstr(first.seen[0].notice, "it comes when the run goes on"));
        runs_do(&second, arena, *state, 3, flags);
        assert_int_equal(second.seen[0].resumed_step, rows[i].step);
        assert_int_equal(second.seen[0].tests, rows[i].tests);
        for (int step = 0; step < whole.seen[0].last_step; step++)
            assert_true(second.seen[0].score[step] == whole.seen[0].score[step]);
        assert_true(runs_step_loss(&second, whole.seen[0].last_step - 1) ==
                    runs_step_loss(&whole, whole.seen[0].last_step - 1));
    }
}

/* The run is done but for its last evaluation: then it ends as ever. */
static void a_stop_in_the_last_evaluation_ends_a_run_that_is_done(void **state)
{
    auto_arena struct arena *arena = arena_open();
    static const char *const flags[] = {"--epochs 1", "--max_steps 3"};
    for (size_t i = 0; i < array_length(flags); i++) {
        struct run run = {.seen[0].stops_in_evaluation = true};
        runs_do(&run, arena, *state, 3, flags[i]);
        assert_int_equal(run.seen[0].tests, 0);
    }
}

/* Writes over the last bytes of rank 1's first file of the model: rank 0 may not even read it. */
static void damage(struct arena *arena, const char *checkpoint)
{
    glob_t files;
    const char *pattern = arena_printf(arena, "%s/model/shard-00002-*", checkpoint);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    FILE *file = fopen(files.gl_pathv[0], "r+");
    globfree(&files);
    assert_non_null(file);
    assert_int_equal(fseek(file, -3, SEEK_END), 0);
    fputs("\377\1", file);
    fclose(file);
}

/* A damaged newest checkpoint gives way to an older one, whose bits lead on; by its own name, or
 * with no other, it stays an error. */
static void a_damaged_checkpoint_gives_way_to_an_older_one(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/damaged", (char *)*state);
    struct run first = {0};
    runs_do(&first, arena, *state, 2,
            arena_printf(arena, "--save_steps=3 --max_steps=6 --checkpoint_dir %s", dir));
    damage(arena, arena_printf(arena, "%s/mnist_cnn-6steps", dir));
    struct run second = {.restarted = true, .seen[0].may_skip = true};
    runs_do(&second, arena, *state, 2,
            arena_printf(arena, "--keep_last=1 --max_steps=5 --checkpoint_dir %s", dir));
    assert_int_equal(second.seen[0].resumed_step, 3);
    assert_non_null(strstr(second.seen[0].skipped, "mnist_cnn-6steps/model"));
    assert_true(second.seen[0].loss[4] == first.seen[0].loss[4]);
    struct config config; /* now with 5 steps, the only good one, for all that keep_last says */
    runs_configure(&config, arena, *state, 2,
                   arena_printf(arena, "--resume %s/mnist_cnn-6steps", dir));
    struct run third = {.config = &config.value, .size = 2};
    runs_start(&third);
    assert_fails(third.result[0], &third.err[0], ERR_INPUT, "move the checkpoint away");
    damage(arena, arena_printf(arena, "%s/mnist_cnn-5steps", dir));
    runs_configure(&config, arena, *state, 2, arena_printf(arena, "--resume %s", dir));
    struct run fourth = {.config = &config.value, .size = 2, .seen[0].may_skip = true};
    runs_start(&fourth);
    assert_fails(fourth.result[0], &fourth.err[0], ERR_INPUT, "mnist_cnn-5steps");
}

/* So does one to another of the same step, as of another prefix. */
static void a_damaged_checkpoint_gives_way_to_one_of_its_step(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/alike", (char *)*state);
    struct run first = {0}, other = {0};
    runs_do(&first, arena, *state, 2,
            arena_printf(arena, "--max_steps=3 --checkpoint_dir %s", dir));
    runs_do(
        &other, arena, *state, 2,
        arena_printf(arena, "--max_steps=3 --checkpoint.prefix=other --checkpoint_dir %s", dir));
    damage(arena, arena_printf(arena, "%s/other-3steps", dir));
    struct run second = {.restarted = true, .seen[0].may_skip = true};
    runs_do(&second, arena, *state, 2,
            arena_printf(arena, "--max_steps=4 --checkpoint_dir %s", dir));
    assert_int_equal(second.seen[0].resumed_step, 3);
    assert_non_null(strstr(second.seen[0].skipped, "other-3steps/model"));
}

/* A run that asks for momentum takes no checkpoint without it for a damaged one: it ends, where the
 * one before, which has it, would cost steps that nobody gave up. */
static void a_checkpoint_without_momentum_is_not_passed_over(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *flags =
        arena_printf(arena, "--checkpoint_dir %s/momentum --keep_last 0", (const char *)*state);
    struct run with = {0}, without = {0};
    runs_do(&with, arena, *state, 1, arena_printf(arena, "%s --max_steps 2", flags));
    runs_do(&without, arena, *state, 1,
            arena_printf(arena, "%s --max_steps 4 --momentum 0 --resume latest", flags));
    struct config config;
    struct run again = {.config = &config.value, .size = 1};
    runs_configure(&config, arena, *state, 1,
                   arena_printf(arena, "%s --max_steps 6 --resume latest", flags));
    runs_start(&again);
    assert_fails(again.result[0], &again.err[0], ERR_CONFIG, "optimizer.momentum 0");
}

static void what_differs_on_resume_is_told(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/differs", (char *)*state);
    struct run first = {0}, same = {0}, other = {0};
    runs_do(&first, arena, *state, 2,
            arena_printf(arena, "--max_steps=2 --checkpoint_dir %s", dir));
    runs_do(&same, arena, *state, 1, arena_printf(arena, "--max_steps=2 --resume %s", dir));
    assert_string_equal(same.seen[0].differs, "");
    assert_int_equal(same.seen[0].steps, 0);
    assert_non_null(
        strstr(same.seen[0].notice, "nothing is trained: the checkpoint's step 2 is where"));
    runs_do(&other, arena, *state, 1,
            arena_printf(arena, "--max_steps=2 --resume %s --seed=7 --batch_size=4 --train_size=40",
                         dir));
    assert_non_null(strstr(other.seen[0].differs, "runtime.seed: it had 42, this one has 7"));
    assert_non_null(strstr(other.seen[0].differs,
                           "samples per step and micro-batch: it had 12, this one has 4"));
    assert_non_null(strstr(other.seen[0].differs, ", this one has 40"));
}

/* A directory in which an older run got further: a restart goes on only from what its own run
 * saved, if it is known which that is. What its own run saved is itself a sign of a restart. */
static void a_restart_goes_on_from_its_own_run(void **state)
{
    static const struct {
        const char *name;
        bool restarted;
        const char *flags;
        int resumed_step;
        const char *notice;
    } rows[] = {
        {"second", false, "", 3, ""},
        {"second", true, "", 3, ""},
        {"second", false, "--checkpoint.auto_resume=false", 0, "own has checkpoints of another"},
        {"third", true, "", 0, "and leaves the rest; to go on from them"},
        {"fourth", false, "--keep_last=1", 0, "own has checkpoints of another run, the latest "},
        {"fifth", false, "--keep_last=1", 0, "and removes those of fewer steps"},
        {NULL, false, "", 0, "own has checkpoints of another run, the latest "},
        {NULL, true, "", 5, ""}, /* nobody knows */
        {"second", true, "--resume_from_checkpoint=latest", 5, ""},
    };
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/own", (char *)*state);
    struct run first = {.name = "first"}, second = {.name = "second"};
    runs_do(&first, arena, *state, 2,
            arena_printf(arena, "--max_steps=5 --checkpoint_dir %s", dir));
    assert_null(strstr(first.seen[0].notice, "another run"));
    runs_do(&second, arena, *state, 2,
            arena_printf(arena, "--max_steps=3 --checkpoint_dir %s", dir));
    for (size_t i = 0; i < array_length(rows); i++) {
        struct run run = {.name = rows[i].name, .restarted = rows[i].restarted};
        /* What one step saves is never the latest of its run. */
        runs_do(&run, arena, *state, 2,
                arena_printf(arena, "--max_steps=1 --checkpoint_dir %s %s", dir, rows[i].flags));
        assert_int_equal(run.seen[0].resumed_step, rows[i].resumed_step);
        bool is_told = strstr(run.seen[0].notice, "another run") != NULL;
        if (is_told != (rows[i].notice[0] != 0) || !strstr(run.seen[0].notice, rows[i].notice))
            fail_msg("row %zu: notice '%s'", i, run.seen[0].notice);
    }
}

/* Who asks to go on where nothing is gets a line; where Trainer would raise an error, an error. */
static void a_start_without_a_checkpoint_is_told(void **state)
{
    static const struct {
        const char *flags; /* DIR: a directory without a checkpoint */
        bool is_told;
        const char *error; /* "": it trains */
    } rows[] = {
        {"--checkpoint_dir DIR", false, ""},
        {"--checkpoint_dir DIR --resume_from_checkpoint latest", true, ""},
        {"--checkpoint_dir DIR --resume_from_checkpoint DIR", true, ""},
        {"--checkpoint_dir DIR --resume True --checkpoint None", true, ""},
        {"--checkpoint_dir DIR --preset trainer --resume_from_checkpoint latest", true, ""},
        {"--checkpoint_dir DIR --preset trainer --resume_from_checkpoint True", false,
         "no valid checkpoint found in output directory"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *dir = arena_printf(arena, "%s/anew%zu", (char *)*state, i);
        auto_str struct str flags;
        struct config config;
        str_init(&flags, 4096);
        str_add(&flags, "--max_steps=1");
        char *rest = NULL;
        for (char *word = strtok_r(arena_strdup(arena, rows[i].flags), " ", &rest); word;
             word = strtok_r(NULL, " ", &rest))
            str_printf(&flags, " %s", strcmp(word, "DIR") == 0 ? dir : word);
        runs_configure(&config, arena, *state, 2, str_text(&flags));
        struct run run = {.config = &config.value, .size = 2};
        runs_start(&run);
        for (int rank = 0; rank < 2; rank++)
            if (rows[i].error[0])
                assert_fails(run.result[rank], &run.err[rank], ERR_NOT_FOUND, rows[i].error);
            else
                assert_ok(run.result[rank], &run.err[rank]);
        assert_int_equal(run.seen[0].began_anew, rows[i].is_told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_on_one_rank_saves_and_stops_all),
        cmocka_unit_test(a_stop_in_an_evaluation_leaves_it_for_later),
        cmocka_unit_test(a_stop_in_the_last_evaluation_ends_a_run_that_is_done),
        cmocka_unit_test(a_damaged_checkpoint_gives_way_to_an_older_one),
        cmocka_unit_test(a_damaged_checkpoint_gives_way_to_one_of_its_step),
        cmocka_unit_test(a_checkpoint_without_momentum_is_not_passed_over),
        cmocka_unit_test(what_differs_on_resume_is_told),
        cmocka_unit_test(a_restart_goes_on_from_its_own_run),
        cmocka_unit_test(a_start_without_a_checkpoint_is_told),
    };
    return cmocka_run_group_tests(tests, runs_make_images, runs_remove);
}
