/* Going on from memory that outlived the ranks: with the bits of a run that was never interrupted,
 * and only from what can be trusted. */
#include "agent/launch/rank_memory.h"
#include "base/file.h"
#include "tests/agent/run_memory.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct attempt {
    const char *flags;
    const char *name; /* the run's */
    int stop_at;      /* 0: to the end */
    bool may_skip;
    int64_t step_us; /* of a clock that is not real; 0: it is */
};

typedef void configure_function(struct config *config, struct arena *arena, const char *data,
                                int size, const char *flags);

/* One start of the ranks by their launcher. */
static struct run *start(configure_function *configure, struct arena *arena, const char *data,
                         int size, const int fds[RUNS_MAX_RANKS], const struct attempt *a)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    configure(config, arena, data, size, a->flags);
    run->config = &config->value;
    run->size = size;
    run->name = a->name ? a->name : "uid-1";
    run->step_us = a->step_us;
    memcpy(run->memory_fds, fds, sizeof run->memory_fds);
    for (int rank = 0; rank < size; rank++) {
        run->seen[rank].stop_at_step = a->stop_at;
        run->seen[rank].may_skip = a->may_skip;
    }
    runs_start(run);
    for (int rank = 0; rank < size; rank++)
        if (a->stop_at)
            assert_fails(run->result[rank], &run->err[rank], ERR_CANCELLED, "stopped");
        else
            assert_ok(run->result[rank], &run->err[rank]);
    return run;
}

static void assert_same_file(const char *a, const char *b, const char *what)
{
    char *bytes[2];
    size_t sizes[2];
    const char *paths[2] = {a, b};
    struct error err;
    for (int i = 0; i < 2; i++)
        assert_ok(file_read(paths[i], 64 << 20, &bytes[i], &sizes[i], &err), &err);
    if (sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]) != 0)
        fail_msg("%s: not the weights of the run that was not interrupted", what);
    free(bytes[0]), free(bytes[1]);
}

/* ---- the same bits ---- */

#define GPT2 "--model.type=gpt2 --hidden_size=16 --max_position_embeddings=16 --dropout=0.25 "
static const struct {
    const char *name;
    bool is_language;
    int size;
    const char *flags;
} cases[] = {
    {"images", false, 2,
     "--sharding_strategy=FULL_SHARD --dropout=0.25 "
     "--auto_wrap_policy SIZE_BASED_WRAP"},
    {"one rank", true, 1, GPT2},
    {"FULL_SHARD", true, 2, GPT2 "--sharding_strategy=FULL_SHARD"},
    {"SHARD_GRAD_OP", true, 2, GPT2 "--sharding_strategy=SHARD_GRAD_OP"},
    {"NO_SHARD", true, 2, GPT2 "--sharding_strategy=NO_SHARD"},
    {"HYBRID_SHARD", true, 4, GPT2 "--sharding_strategy=HYBRID_SHARD --shard_group_size=2"},
    {"HYBRID_SHARD_ZERO2", true, 4,
     GPT2 "--sharding_strategy=HYBRID_SHARD_ZERO2 --shard_group_size=2"},
    {"bf16", true, 2, GPT2 "--mixed_precision=bf16"},
    {"Adadelta, accumulated", true, 2,
     GPT2 "--optim=adadelta --batch_size=3 --gradient_accumulation_steps=2"},
    {"Llama", true, 2, "--sharding_strategy=FULL_SHARD"},
    {"Llama in bf16-true", true, 2, "--mixed_precision=bf16-true"},
    {"Llama, accumulated, in bf16", true, 2,
     "--mixed_precision=bf16 --batch_size=3 --gradient_accumulation_steps=2"},
};

/* Where a run goes on after it was stopped in step `stop`, and looked at after that. */
static void check_resumed(const char *name, const struct seen *seen, int stop, int every)
{
    const unsigned loads = 1u << RUN_LOAD_BEGIN | 1u << RUN_LOAD_DONE;
    if ((seen->events & loads) != loads)
        fail_msg("%s: it does not say when it loads", name);
    if (!seen->from_memory || seen->resumed_step % every != 0 || seen->steps_lost >= every ||
        seen->steps_lost < 0 || seen->resumed_step + seen->steps_lost <= stop)
        fail_msg("%s: resumed at step %d, %d lost", name, seen->resumed_step, seen->steps_lost);
}

/* every: steps between snapshots. A language model is interrupted twice, after steps 8 and 11 of
 * 12, one that classifies images, which looks after each tenth step, once: at an epoch's end, and
 * within the last epoch, whose loss is compared. */
static void interrupt(void *data[2], size_t i, int every)
{
    static const int stops[] = {7, 10, 9};
    auto_arena struct arena *arena = arena_open();
    bool is_language = cases[i].is_language;
    configure_function *configure = is_language ? runs_configure_language : runs_configure;
    const char *dir = data[is_language], *name = cases[i].name, *paths[2], *flags[2];
    int fds[RUNS_MAX_RANKS] = {0}, none[RUNS_MAX_RANKS] = {0}, size = cases[i].size;
    for (int n = 0; n < 2; n++) {
        paths[n] = arena_printf(arena, "%s/%zu-%d-%d%s", dir, i, every, n,
                                is_language ? "" : ".safetensors");
        flags[n] = arena_printf(
            arena,
            "--device=cpu --epochs=3 %s --lr=0.001 %s --eval_strategy=no --save_model=%s "
            "--memory_every_steps=%d",
            is_language ? "" : arena_printf(arena, "--train_size=32 --batch_size=%d", 8 / size),
            cases[i].flags, paths[n], n ? every : 0);
    }
    const struct seen *a =
        &start(configure, arena, dir, size, none, &(struct attempt){.flags = flags[0]})->seen[0];
    const struct seen *b = NULL;
    assert_false(a->phases & 1u << RANK_SNAPSHOT);
    run_memory_open(fds, size);
    int first = is_language ? 0 : 2, last = is_language ? 2 : 3;
    for (int n = first; n <= last; n++) {
        struct attempt attempt = {.flags = flags[1], .stop_at = n < last ? stops[n] : 0};
        b = &start(configure, arena, dir, size, fds, &attempt)->seen[0];
        assert_true(n > first || b->phases & 1u << RANK_SNAPSHOT);
        if (n > first)
            check_resumed(name, b, stops[n - 1], every);
    }
    run_memory_close(fds, size);
    for (int step = b->resumed_step; step < a->last_step; step++)
        if (a->loss[step] != b->loss[step])
            fail_msg("%s: step %d has loss %.17g, not %.17g", name, step + 1, b->loss[step],
                     a->loss[step]);
    if (a->epoch_loss != b->epoch_loss)
        fail_msg("%s: the epoch has loss %.17g, not %.17g", name, b->epoch_loss, a->epoch_loss);
    const char *file = is_language ? "/model.safetensors" : "";
    assert_same_file(arena_printf(arena, "%s%s", paths[0], file),
                     arena_printf(arena, "%s%s", paths[1], file), name);
}

static void the_bits_are_those_of_a_calm_run(void **state)
{
    for (size_t i = 0; i < array_length(cases); i++)
        interrupt((void **)*state, i, 1);
}

static void of_a_snapshot_in_three_steps_too(void **state)
{
    interrupt((void **)*state, 2, 3);
    interrupt((void **)*state, 9, 3);
}

static int make_data(void **state)
{
    static void *data[2];
    *state = data;
    return runs_make_images(&data[0]) || runs_make_tokens(&data[1]);
}

static int remove_data(void **state)
{
    void **data = *state;
    return runs_remove(&data[0]) || runs_remove(&data[1]);
}

/* ---- which is taken ---- */

#define STEPS "--device=cpu --epochs=7 --optim=sgd --momentum=0.9 "

/* What a first start leaves that stops after step 10, and what the second makes of it. */
static void the_newest_is_taken(void **state)
{
    static const struct {
        const char *name, *first, *second; /* flags; DIR: a directory of the row's own */
        const char *run;                   /* the second start's id; NULL: the same */
        bool damages;                      /* the newest on disk */
        int step;                          /* that it goes on from; 0: it begins anew */
        bool from_memory;
        const char *notice;
    } rows[] = {
        {"memory is newer", "--save_steps=4 --memory_every_steps=3", "", NULL, false, 9, true, ""},
        {"disk is newer", "--save_steps=5 --memory_every_steps=3", "", NULL, false, 10, false, ""},
        {"both have it", "--save_steps=5 --memory_every_steps=5", "", NULL, false, 10, true, ""},
        {"damage on disk", "--save_steps=5 --memory_every_steps=3", "", NULL, true, 9, true, ""},
        {"damage on disk, and the one before it is newer", "--save_steps=1 --memory_every_steps=4",
         "", NULL, true, 9, false, ""},
        {"latest, and nothing on disk", "--save_steps=1000 --memory_every_steps=3",
         "--resume_from_checkpoint=latest", NULL, false, 9, true, ""},
        {"true, and nothing on disk", "--save_steps=1000 --memory_every_steps=3",
         "--resume_from_checkpoint=true", NULL, false, 9, true, ""},
        {"a restart that is to begin anew", "--save_steps=1000 --memory_every_steps=3",
         "--checkpoint.auto_resume=false", NULL, false, 0, false, ""},
        {"memory is switched off", "--save_steps=4 --memory_every_steps=3",
         "--memory_every_steps=0", NULL, false, 8, false, ""},
        {"another run", "--save_steps=1000 --memory_every_steps=3", "", "uid-2", false, 0, false,
         "rank 0: it is of run uid-1, and this is uid-2"},
        {"another optimizer", "--save_steps=1000 --memory_every_steps=3",
         "--optim=sgd --momentum=0", NULL, false, 0, false,
         "a checkpoint in memory is passed over: rank 0: it is of another model, optimizer, "
         "strategy or number of ranks, of "},
        {"another optimizer of that size", "--optim=adam --save_steps=1000 --memory_every_steps=3",
         "--optim=adamw", NULL, false, 0, false,
         "rank 0: it is of another model, optimizer or strategy"},
        {"another strategy", "--save_steps=1000 --memory_every_steps=3",
         "--sharding_strategy=NO_SHARD", NULL, false, 0, false,
         "rank 0: it is of another model, optimizer, strategy or number of ranks, of "},
    };
    void **data = *state;
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *dir = arena_printf(arena, "%s/newest-%zu", (char *)data[1], i);
        const char *common = arena_printf(arena, STEPS "--checkpoint_dir=%s --save_on_signal=0 %s",
                                          dir, rows[i].first);
        int fds[RUNS_MAX_RANKS] = {0};
        run_memory_open(fds, 2);
        start(runs_configure_language, arena, data[1], 2, fds,
              &(struct attempt){.flags = common, .stop_at = 9});
        if (rows[i].damages) {
            glob_t found;
            const char *pattern = arena_printf(arena, "%s/*-10steps/model/shard-00001-*", dir);
            assert_int_equal(glob(pattern, 0, NULL, &found), 0);
            assert_int_equal(truncate(found.gl_pathv[0], 100), 0);
            globfree(&found);
        }
        const struct attempt again = {.flags = arena_printf(arena, "%s %s", common, rows[i].second),
                                      .name = rows[i].run,
                                      .stop_at = rows[i].step == 10 ? 11 : 1,
                                      .may_skip = rows[i].damages};
        const struct run *run = start(runs_configure_language, arena, data[1], 2, fds, &again);
        run_memory_close(fds, 2);
        const struct seen *seen = &run->seen[0];
        if (seen->resumed_step != rows[i].step || seen->from_memory != rows[i].from_memory ||
            !strstr(seen->notice, rows[i].notice) || (seen->skipped[0] != 0) != rows[i].damages)
            fail_msg("%s: resumed at step %d, %sfrom memory: %s; %s", rows[i].name,
                     seen->resumed_step, seen->from_memory ? "" : "not ", seen->notice,
                     seen->skipped);
    }
}

/* Weights that are no numbers are not kept: the run ends there, as it does for a save to disk, and
 * memory has the last step that was good on all ranks. */
static void no_numbers_are_not_kept(void **state)
{
    void **data = *state;
    auto_arena struct arena *arena = arena_open();
    const char *flags =
        "--device=cpu --optim=sgd --lr=1e6 --weight_decay=1000 --warmup_steps=0 --epochs=7 "
        "--grad_clip=0 --memory_every_steps=1";
    int fds[RUNS_MAX_RANKS] = {0};
    run_memory_open(fds, 2);
    int steps[2];
    for (int n = 0; n < 2; n++) {
        struct config *config = arena_new(arena, struct config);
        struct run *run = arena_new(arena, struct run);
        runs_configure_language(config, arena, data[1], 2, flags);
        *run = (struct run){.config = &config->value, .size = 2, .name = "uid-1"};
        memcpy(run->memory_fds, fds, sizeof fds);
        runs_start(run);
        steps[n] = run->seen[0].last_step;
        bool is_first = run->err[0].code == ERR_DIVERGED;
        assert_fails(run->result[!is_first], &run->err[!is_first], ERR_DIVERGED,
                     arena_printf(arena, "checkpoint in memory at step %d: tensor ", steps[n]));
        assert_int_equal(run->seen[0].resumed_step, n ? steps[0] - 1 : 0);
    }
    assert_int_equal(steps[1], steps[0]);
    run_memory_close(fds, 2);
}

/* So often that it costs next to nothing: the first look is after two steps, and later saves happen
 * at the same steps on all ranks. */
static void automatic_saves_are_found_again(void **state)
{
    static const struct {
        int64_t step_us;
        int resumed_step;
    } rows[] = {
        {1000 * 1000, 40}, /* each snapshot takes 1 us: after each step */
        {10, 0},           /* the first one would take longer than all steps */
    };
    void **data = *state;
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct attempt attempt = {
            .flags = "--device=cpu --epochs=15", .stop_at = 39, .step_us = rows[i].step_us};
        int fds[RUNS_MAX_RANKS] = {0};
        run_memory_open(fds, 2);
        start(runs_configure_language, arena, data[1], 2, fds, &attempt);
        attempt.stop_at = 0;
        const struct run *run = start(runs_configure_language, arena, data[1], 2, fds, &attempt);
        assert_true(rank_memory_used(fds[0]) > 0);
        run_memory_close(fds, 2);
        assert_int_equal(run->seen[0].last_step, 60);
        assert_int_equal(run->seen[0].resumed_step, rows[i].resumed_step);
        assert_int_equal(run->seen[0].from_memory, rows[i].resumed_step > 0);
        assert_int_equal(run->seen[0].steps_lost, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_a_calm_run),
        cmocka_unit_test(of_a_snapshot_in_three_steps_too),
        cmocka_unit_test(the_newest_is_taken),
        cmocka_unit_test(no_numbers_are_not_kept),
        cmocka_unit_test(automatic_saves_are_found_again),
    };
    return cmocka_run_group_tests(tests, make_data, remove_data);
}
