/* Gradients and weights that are no numbers: each nan_policy, and what is saved and loaded, with
 * two ranks as threads. */
#include "agent/checkpoint/safetensors.h"
#include "base/file.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* ---- what is saved and loaded ---- */

#define SAVES "--save_steps 1 --checkpoint_dir %s/%s "

static void start(struct run *run, struct arena *arena, const char *data, const char *flags)
{
    struct config *config = arena_new(arena, struct config);
    runs_configure_language(config, arena, data, 2,
                            arena_printf(arena, DIVERGES "--eval_strategy no %s", flags));
    *run = (struct run){.config = &config->value, .size = 2, .name = "uid"};
    run->seen[0].may_skip = run->seen[1].may_skip = true;
    runs_start(run);
}

static void assert_done(const struct run *run)
{
    for (int rank = 0; rank < 2; rank++)
        assert_ok(run->result[rank], &run->err[rank]);
}

/* The steps of the run whose weights are numbers: those that skipping does not skip. */
static int good_steps(struct arena *arena, const char *data, const char *dir)
{
    struct run skipped;
    const char *flags = arena_printf(arena, SAVES "--nan_policy skip", data, dir);
    start(&skipped, arena, data, flags);
    assert_done(&skipped);
    assert_int_equal(skipped.seen[0].saves, STEPS); /* the weights stay good */
    assert_in_range(skipped.seen[0].skipped_steps, 1, STEPS - 1);
    return STEPS - (int)skipped.seen[0].skipped_steps;
}

/* Steps from weights that are no numbers are waste: the run ends at its first such save, with its
 * tensor, rank and step, and what it saved before is what a restart goes on from. */
static void a_save_of_no_numbers_ends_the_run(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    int good = good_steps(arena, data, "calm");
    for (int async = 0; async < 2; async++) {
        const char *dir = async ? "beside" : "between";
        const char *flags = arena_printf(arena, SAVES "--checkpoint.async=%d", data, dir, async);
        struct run run, resumed;
        start(&run, arena, data, flags);
        for (int rank = 0; rank < 2; rank++) {
            assert_fails(
                run.result[rank], &run.err[rank], ERR_DIVERGED,
                arena_printf(arena, "checkpoint at step %d: rank 0: tensor model.", good + 1));
            assert_non_null(strstr(run.err[rank].msg, "] is NaN: neither saved nor loaded"));
            assert_int_equal(run.seen[rank].saves, good);
            assert_true(run.err[rank].shared);
        }
        assert_int_equal(support_count_entries(arena_printf(arena, "%s/%s", data, dir)), good);
        start(&resumed, arena, data,
              arena_printf(arena, "%s --max_steps %d --resume latest", flags, good));
        assert_done(&resumed);
        assert_int_equal(resumed.seen[0].resumed_step, good);
        assert_string_equal(resumed.seen[0].skipped, "");
    }
}

/* Who insists has them; who does not passes over those, to the last that is good. */
static void who_insists_saves_and_loads_them(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    int good = good_steps(arena, data, "calm_too");
    const char *flags = arena_printf(arena, SAVES, data, "insists");
    struct run run, insists, passes;
    start(&run, arena, data, arena_printf(arena, "%s --allow_nonfinite", flags));
    assert_done(&run);
    assert_int_equal(run.seen[0].saves, STEPS);
    start(&insists, arena, data,
          arena_printf(arena, "%s --allow_nonfinite --resume latest", flags));
    assert_done(&insists);
    assert_int_equal(insists.seen[0].resumed_step, STEPS);
    start(&passes, arena, data,
          arena_printf(arena, "%s --max_steps %d --resume latest", flags, good));
    assert_done(&passes);
    assert_int_equal(passes.seen[0].resumed_step, good);
    assert_non_null(strstr(passes.seen[0].skipped,
                           arena_printf(arena, "-%dsteps/model/shard-00001", good + 1)));
}

/* The export at the end, without checkpoints before it: no exit as if all were well. */
static void the_whole_model_follows_the_same_rule(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *path = arena_printf(arena, "%s/whole", data);
    const char *flags = arena_printf(arena, "--save_model %s", path);
    struct run refused, insists, loading;
    start(&refused, arena, data, flags);
    for (int rank = 0; rank < 2; rank++)
        assert_fails(refused.result[rank], &refused.err[rank], ERR_DIVERGED,
                     "save model at step 8: rank 0: tensor ");
    assert_int_equal(access(path, F_OK), -1);
    start(&insists, arena, data, arena_printf(arena, "%s --allow_nonfinite", flags));
    assert_done(&insists);
    start(&loading, arena, data, arena_printf(arena, "--init_weights %s", path));
    for (int rank = 0; rank < 2; rank++)
        assert_fails(
            loading.result[rank], &loading.err[rank], ERR_INPUT,
            arena_printf(arena, "initial weights: rank 0: %s/model.safetensors: tensor ", path));
    start(&loading, arena, data, arena_printf(arena, "--init_weights %s --allow_nonfinite", path));
    assert_done(&loading);
    assert_int_equal(loading.seen[0].nonfinite_steps, STEPS);
}

/* ---- one bad step among good ones ---- */

/* The embedding of an id that the data has once, in the second step of an epoch. */
static void spoil_embedding(struct arena *arena, const char *model)
{
    enum { RARE_ID = 40, WIDTH = 32 };
    const char *path = arena_printf(arena, "%s/model.safetensors", model);
    struct safetensors *file;
    struct error err;
    assert_ok(safetensors_open(path, &file, &err), &err);
    const struct safetensors_header *header = safetensors_header(file);
    const struct safetensors_tensor *words = safetensors_find(header, "model.embed_tokens.weight");
    assert_non_null(words);
    int64_t row =
        header->header_bytes + words->data_begin + RARE_ID * WIDTH * (int64_t)sizeof(float);
    safetensors_close(file);
    auto_fclose FILE *bytes = fopen(path, "r+be");
    assert_non_null(bytes);
    const float nothing[WIDTH] = {NAN};
    assert_int_equal(fseek(bytes, row, SEEK_SET), 0);
    assert_int_equal(fwrite(nothing, sizeof nothing, 1, bytes), 1);
}

static void assert_only_this_step_has_no_loss(const struct run *run, int first, int bad, int last)
{
    for (int rank = 0; rank < run->size; rank++) {
        const struct seen *seen = &run->seen[rank];
        assert_int_equal(seen->last_step, last);
        for (int s = first; s <= last; s++)
            if (isfinite(seen->loss[s - 1]) == (s == bad))
                fail_msg("rank %d, step %d: %g", rank, s, seen->loss[s - 1]);
        assert_int_equal(seen->nonfinite_steps, bad >= first);
        assert_int_equal(seen->skipped_steps, bad >= first);
        assert_true(isfinite(seen->epoch_loss) && seen->epoch_loss > 0);
    }
}

/* It counts in no other step's loss, nor in the epoch's, nor in those of a run that goes on. */
static void a_skipped_step_is_in_no_sum(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *model = arena_printf(arena, "%s/model", data);
    struct run made = {0}, run = {0}, resumed = {0};
    runs_do_language(&made, arena, data, 2,
                     arena_printf(arena, "--max_steps 1 --save_model %s", model));
    spoil_embedding(arena, model);
    const char *flags = arena_printf(
        arena, "--shuffle false --allow_nonfinite --nan_policy skip --checkpoint_dir %s/one_bad",
        data);
    runs_do_language(&run, arena, data, 2,
                     arena_printf(arena, "%s --init_weights %s --max_steps 3", flags, model));
    assert_only_this_step_has_no_loss(&run, 1, 2, 3);
    runs_do_language(&resumed, arena, data, 2,
                     arena_printf(arena, "%s --resume latest --max_steps 4", flags));
    assert_int_equal(resumed.seen[0].resumed_step, 3);
    assert_only_this_step_has_no_loss(&resumed, 4, 0, 4);
    /* gone on with, it spoils what comes behind it, and the epoch says so */
    struct run warned = {0};
    runs_do_language(&warned, arena, data, 2,
                     arena_printf(arena,
                                  "--shuffle false --allow_nonfinite --init_weights %s "
                                  "--max_steps 4",
                                  model));
    assert_true(isnan(warned.seen[0].loss[3]) && isnan(warned.seen[0].epoch_loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_or_skipped_it_goes_on),
        cmocka_unit_test(aborted_all_ranks_end_alike),
        cmocka_unit_test(a_save_of_no_numbers_ends_the_run),
        cmocka_unit_test(who_insists_saves_and_loads_them),
        cmocka_unit_test(the_whole_model_follows_the_same_rule),
        cmocka_unit_test(a_skipped_step_is_in_no_sum),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
