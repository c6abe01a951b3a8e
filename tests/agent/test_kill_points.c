/* Ranks that die at named points of a run, one after the other, two at once, and while the others
 * recover: the run ends with the bits of one in which nobody died. */
#include "base/file.h"
#include "tests/agent/run_memory.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* The starts of one run, in order: who dies where. After the last one comes a start in which nobody
 * does. */
static const struct {
    const char *name;
    int rank;
    int other; /* dies at the same point; the same number: nobody does */
    struct doom doom;
} kills[] = {
    {"while they meet for the first time", 1, 1, {RANK_START, 1}},
    {"in the first step", 0, 0, {RANK_FIRST_STEP, 2}},
    {"in the middle of an epoch", 1, 1, {RANK_STEP, 5}},
    {"while they recover", 0, 0, {RANK_START, 4}},
    {"during a checkpoint in memory", 1, 1, {RANK_SNAPSHOT, 3}},
    {"when the next start begins", 1, 1, {RANK_START, 1}},
    {"during a save", 0, 0, {RANK_SAVE, 1}},
    {"two at once", 0, 1, {RANK_STEP, 4}},
    {"during an evaluation", 1, 1, {RANK_EVALUATION, 1}},
};

#define GPT2                                                                                       \
    "--model.type=gpt2 --hidden_size=16 --num_hidden_layers=2 --max_position_embeddings=16 "       \
    "--dropout=0.25 "

/* Every strategy in both types, with a batch at once and with one of three micro-batches.
 * Neighbours differ in the strategy: a build that does each fourth of them has all five. */
static const struct {
    const char *name;
    int size;
    const char *flags;
} strategies[] = {
    {"FULL_SHARD", 2, ""},
    {"SHARD_GRAD_OP", 2, ""},
    {"NO_SHARD", 2, ""},
    {"HYBRID_SHARD", 4, "--shard_group_size=2"},
    {"HYBRID_SHARD_ZERO2", 4, "--shard_group_size=2"},
};
#define ACCUMULATES "--batch_size=1 --gradient_accumulation_steps=3 "
static const struct {
    const char *name, *flags;
} batches[] = {
    {"fp32", "--mixed_precision=no"},
    {"bf16", "--mixed_precision=bf16"},
    {"fp32, accumulated", "--mixed_precision=no " ACCUMULATES},
    {"bf16, accumulated", "--mixed_precision=bf16 " ACCUMULATES "--accumulation_sync=every"},
};
enum { STRATEGIES = array_length(strategies), KINDS = STRATEGIES * array_length(batches) };

struct kind {
    int size;
    const char *name, *flags;
};

static struct kind kind_of(struct arena *arena, size_t i)
{
    size_t s = i % STRATEGIES, b = i / STRATEGIES;
    return (struct kind){.size = strategies[s].size,
                         .name = arena_printf(arena, "%s, %s", strategies[s].name, batches[b].name),
                         .flags =
                             arena_printf(arena, "--sharding_strategy=%s %s %s", strategies[s].name,
                                          strategies[s].flags, batches[b].flags)};
}

static struct run *start(struct arena *arena, const char *data, int size, const char *flags,
                         const int fds[RUNS_MAX_RANKS], int kill)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    runs_configure_language(config, arena, data, size, flags);
    *run = (struct run){.config = &config->value, .size = size, .name = "uid-1"};
    memcpy(run->memory_fds, fds, sizeof run->memory_fds);
    for (int rank = 0; rank < run->size; rank++) {
        run->local_sizes[rank] = 1;
        if (kill >= 0 && (rank == kills[kill].rank || rank == kills[kill].other))
            run->dooms[rank] = kills[kill].doom;
    }
    runs_start(run);
    return run;
}

static void assert_died(const struct run *run, const char *name, int kill)
{
    for (int rank = 0; rank < run->size; rank++) {
        bool is_victim = rank == kills[kill].rank || rank == kills[kill].other;
        if (run->result[rank] == 0 || run->err[rank].code != ERR_PEER ||
            run->seen[rank].has_died != is_victim)
            fail_msg("%s: killed %s: rank %d: %s", name, kills[kill].name, rank,
                     run->result[rank] ? run->err[rank].msg : "it came to the end");
    }
}

static void assert_same_file(const char *a, const char *b, const char *name)
{
    char *bytes[2];
    size_t sizes[2];
    struct error err;
    assert_ok(file_read(a, 16 << 20, &bytes[0], &sizes[0], &err), &err);
    assert_ok(file_read(b, 16 << 20, &bytes[1], &sizes[1], &err), &err);
    bool same = sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
    free(bytes[0]), free(bytes[1]);
    if (!same)
        fail_msg("%s: not the weights of the run in which nobody died", name);
}

/* Rank 0 has told the same of an evaluation and of the last steps. */
static void assert_same_numbers(const struct seen *calm, const struct seen *last, const char *name)
{
    for (int step = last->resumed_step; step < calm->last_step; step++)
        if (last->loss[step] != calm->loss[step])
            fail_msg("%s: step %d has loss %.17g, not %.17g", name, step + 1, last->loss[step],
                     calm->loss[step]);
    if (last->test_loss != calm->test_loss || last->epoch_loss != calm->epoch_loss)
        fail_msg("%s: the last evaluation has %.17g, not %.17g; the last epoch %.17g, not %.17g",
                 name, last->test_loss, calm->test_loss, last->epoch_loss, calm->epoch_loss);
}

static void the_bits_are_those_of_the_calm_run(void **state)
{
    const char *data = *state;
    for (size_t i = 0; i < KINDS; i += RUNS_EACH) {
        auto_arena struct arena *arena = arena_open();
        int fds[RUNS_MAX_RANKS] = {0}, none[RUNS_MAX_RANKS] = {0};
        const struct kind kind = kind_of(arena, i);
        const char *name = kind.name, *flags[2], *models[2];
        for (int n = 0; n < 2; n++) {
            models[n] = arena_printf(arena, "%s/%zu-%d", data, i, n);
            flags[n] = arena_printf(
                arena,
                "--device=cpu " GPT2 "%s --epochs=6 --eval_strategy=epoch "
                "--dataset=%s --eval_split=eval --checkpoint_dir=%s.steps --save_steps=3 "
                "--save_model=%s %s",
                kind.flags, data, models[n], models[n],
                n ? "--memory_every_steps=1 --memory_buddies" : "--memory_every_steps=0");
        }
        const struct run *calm = start(arena, data, kind.size, flags[0], none, -1);
        for (int rank = 0; rank < kind.size; rank++)
            assert_ok(calm->result[rank], &calm->err[rank]);
        run_memory_open(fds, kind.size);
        for (int kill = 0; kill < (int)array_length(kills); kill++)
            assert_died(start(arena, data, kind.size, flags[1], fds, kill), name, kill);
        const struct run *last = start(arena, data, kind.size, flags[1], fds, -1);
        run_memory_close(fds, kind.size);
        for (int rank = 0; rank < kind.size; rank++)
            assert_ok(last->result[rank], &last->err[rank]);
        assert_true(last->seen[0].from_memory);
        assert_int_equal(last->seen[0].last_step, calm->seen[0].last_step);
        assert_same_numbers(&calm->seen[0], &last->seen[0], name);
        assert_same_file(arena_printf(arena, "%s/model.safetensors", models[0]),
                         arena_printf(arena, "%s/model.safetensors", models[1]), name);
    }
}

/* Each start dies in the same step, as of a batch that no rank survives: from the third one on the
 * log names the samples. */
static void a_step_that_ends_the_run_again_is_named(void **state)
{
    static const struct {
        int every; /* steps between checkpoints in memory */
        const char *notice;
    } rows[] = {
        {1, "the run has ended 2 times in a row in step 7, which trains on samples 25 to 36 of "
            "epoch 2, in the order of the epoch"},
        {5, "the run has ended 2 times in a row in step 7, which trains on samples 25 to 36 of "
            "epoch 2, in the order of the epoch"},
    };
    const char *data = *state;
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        int fds[RUNS_MAX_RANKS] = {0};
        const char *flags =
            arena_printf(arena, "--device=cpu --epochs=6 --memory_every_steps=%d", rows[i].every);
        run_memory_open(fds, 2);
        for (int start = 0; start < 4; start++) {
            struct config *config = arena_new(arena, struct config);
            struct run *run = arena_new(arena, struct run);
            runs_configure_language(config, arena, data, 2, flags);
            *run = (struct run){.config = &config->value, .size = 2, .name = "uid-1"};
            memcpy(run->memory_fds, fds, sizeof fds);
            /* Both, so that neither is told of the other's end before it is there itself. */
            if (rows[i].every == 1 && start > 0 && start < 3) /* it goes on from there */
                run->dooms[0] = run->dooms[1] = (struct doom){RANK_FIRST_STEP, 1};
            else if (start < 3)
                run->seen[0].die_after_step = run->seen[1].die_after_step = 6;
            runs_start(run);
            assert_int_equal(run->result[0] == 0, start == 3);
            const char *notice = run->seen[0].fatal;
            if (start < 2)
                assert_string_equal(notice, "");
            else if (start == 2)
                assert_string_equal(notice, rows[i].notice);
            else
                assert_non_null(strstr(notice, "has ended 3 times in a row in step 7"));
        }
        run_memory_close(fds, 2);
    }
}

/* Each start dies behind a step that was done: the next one is not to blame, if there is one. */
static void an_end_between_steps_is_named(void **state)
{
    static const struct {
        const char *flags;
        enum rank_phase phase; /* in whose first collective it dies */
        const char *notice;
    } rows[] = {
        {"--memory_every_steps=3 --eval_strategy=no", RANK_SAVE,
         "the run has ended 2 times in a row behind step 4, which was done: in an evaluation or as "
         "it saved"},
        {"--memory_every_steps=1 --eval_strategy=no", RANK_SAVE,
         "the run has ended 2 times in a row behind step 4, which was done: "},
        {"--memory_every_steps=1 --eval_strategy=steps --eval_steps=2", RANK_EVALUATION,
         "the run has ended 2 times in a row behind step 2, which was done: "},
    };
    const char *data = *state;
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        int fds[RUNS_MAX_RANKS] = {0};
        const char *flags = arena_printf(arena,
                                         "--device=cpu --epochs=1 --dataset=%s --eval_split=eval "
                                         "--checkpoint_dir=%s/between-%zu --save_steps=1000 %s",
                                         data, data, i, rows[i].flags);
        run_memory_open(fds, 2);
        for (int start = 0; start < 3; start++) {
            struct config *config = arena_new(arena, struct config);
            struct run *run = arena_new(arena, struct run);
            runs_configure_language(config, arena, data, 2, flags);
            *run = (struct run){.config = &config->value, .size = 2, .name = "uid-1"};
            memcpy(run->memory_fds, fds, sizeof fds);
            run->dooms[0] = run->dooms[1] = (struct doom){rows[i].phase, 1};
            runs_start(run);
            assert_true(run->seen[1].has_died);
            const char *notice = run->seen[0].fatal;
            if (start < 2 ? notice[0] != '\0' : !strstr(notice, rows[i].notice))
                fail_msg("row %zu, start %d: %s", i, start, notice);
        }
        run_memory_close(fds, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bits_are_those_of_the_calm_run, runs_make_tokens,
                                        runs_remove),
        cmocka_unit_test_setup_teardown(a_step_that_ends_the_run_again_is_named, runs_make_tokens,
                                        runs_remove),
        cmocka_unit_test_setup_teardown(an_end_between_steps_is_named, runs_make_tokens,
                                        runs_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
