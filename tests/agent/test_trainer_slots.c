/* Runs with reduction slots end with the weights and the optimizer state, bit by bit, of the run
 * that never changed its number of ranks. */
#include "tests/agent/checkpoints.h"
#include "tests/agent/runs.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define T5                                                                                         \
    "--model.type=t5 --vocab_size=550 --tokenizer=tests/data/tokenizers/unigram_t5 "               \
    "--max_source_length=24 --max_target_length=12 --num_key_value_heads=0 "
#define BERT                                                                                       \
    "--model.type=bert --head=pretraining --vocab_size=500 --max_position_embeddings=32 "          \
    "--tokenizer=tests/data/tokenizers/bert_uncased --max_seq_length=24 --num_key_value_heads=0 "

enum { MOST_PARTS = 6, STEPS_A_PART = 2 };

/* What is done on the emulated GPU, which is slow: ranks that share one and so talk through the
 * host, and ranks with one each, over NCCL. */
enum { ON_ONE_GPU = 1, OVER_NCCL = 2 };

static const struct change {
    const char *name; /* of the model's checkpoints */
    void (*train)(struct run *run, struct arena *arena, const char *data, int size,
                  const char *flags);
    const char *rows; /* as in struct runs_case */
    const char *flags;
    int slots;
    int gpus;              /* bits of the above */
    int ranks[MOST_PARTS]; /* of each part of the run, which goes on where the last ended; 0: end */
} changes[] = {
    {"mnist_cnn", runs_do, NULL, "--dropout=0.25", 4, .ranks = {4, 3, 2, 1, 4}},
    {"mnist_cnn", runs_do, NULL, "--sharding_strategy=NO_SHARD --grad_clip=0.5", 8,
     .ranks = {8, 5, 8}},
    {"mnist_cnn", runs_do, NULL,
     "--sharding_strategy=HYBRID_SHARD --shard_group_size=1 --gradient_accumulation_steps=2 "
     "--accumulation_sync=every",
     2, .ranks = {2, 1, 2}},
    {"mnist_cnn", runs_do, NULL, "--sharding_strategy=SHARD_GRAD_OP", 8, .ranks = {8, 5, 8}},
    {"llama", runs_do_language, NULL, "--eval.reduction=rank_mean", 4, .ranks = {4, 3, 2, 1, 4}},
    {"llama",
     runs_do_language,
     NULL,
     "--mixed_precision=bf16 --reduce_dtype=bf16",
     4,
     ON_ONE_GPU | OVER_NCCL,
     {4, 3, 1}},
    {"llama", runs_do_language, NULL, "--mixed_precision=bf16-true", 8, .ranks = {8, 5, 8}},
    {"llama", runs_do_language, NULL,
     "--mixed_precision=bf16 --reduce_dtype=bf16 --sharding_strategy=NO_SHARD "
     "--gradient_accumulation_steps=2 --accumulation_sync=every",
     4, .ranks = {4, 3, 4}},
    {"llama", runs_do_language, NULL,
     "--sharding_strategy=HYBRID_SHARD --shard_group_size=2 --gradient_accumulation_steps=2 "
     "--accumulation_sync=every",
     4, OVER_NCCL, .ranks = {4, 2, 4}},
    {"llama", runs_do_language, NULL, "--sharding_strategy=HYBRID_SHARD_ZERO2 --shard_group_size=2",
     6, .ranks = {6, 4, 2}},
    {"llama", runs_do_language, NULL, "--gradient_accumulation_steps=3", 3, .ranks = {3, 2, 1}},
    {"t5", runs_do_language, "rows", T5 "--dropout=0.1", 3, .ranks = {3, 2, 1, 3}},
    {"bert", runs_do_language, "lines", BERT "--dropout=0.1", 3, .ranks = {3, 2, 1, 3}},
    {"bert", runs_do_language, "lines",
     BERT "--gradient_accumulation_steps=2 --eval.reduction=rank_mean --max_eval_batches=2", 5,
     .ranks = {5, 4, 3, 2, 1}},
};

static bool is_cpu(void)
{
    return strcmp(support_device(), "cpu") == 0;
}

static void do_part(const struct change *c, bool over_nccl, struct run *run, struct arena *arena,
                    const char *data, const char *dir, int ranks, int last_step)
{
    const char *rows = c->rows ? arena_printf(arena, "--dataset=%s/%s", data, c->rows)
                       : c->train == runs_do_language
                           ? arena_printf(arena, "--dataset=%s --eval_split=eval", data)
                           : "";
    const char *gpu = is_cpu() || ranks == 1 ? "" : over_nccl ? " --collectives=nccl" : ":0";
    run->over_nccl = over_nccl;
    c->train(run, arena, data, ranks,
             arena_printf(arena,
                          "--batch_size=%d --device=%s%s %s %s --parallel.reduction_slots=%d "
                          "--eval_strategy=steps --eval_steps=1 "
                          "--epochs=20 --decay_steps=12 --max_steps=%d --checkpoint_dir=%s "
                          "--resume_from_checkpoint=latest",
                          c->slots < 8 ? 2 : 1, support_device(), gpu, c->flags, rows, c->slots,
                          last_step, dir));
    assert_int_equal(run->seen[0].last_step, last_step);
}

/* What was reported, too, to the last bit. */
static void assert_same_step(const struct change *c, const struct seen *calm,
                             const struct seen *changed, int s)
{
    if (memcmp(&calm->norm[s], &changed->norm[s], sizeof calm->norm[s]))
        fail_msg("%s %s, step %d: norm %a, not %a", c->name, c->flags, s + 1, changed->norm[s],
                 calm->norm[s]);
    if (calm->score[s] != changed->score[s])
        fail_msg("%s %s, behind step %d: evaluation %a, not %a", c->name, c->flags, s + 1,
                 changed->score[s], calm->score[s]);
    if (calm->loss[s] != changed->loss[s])
        fail_msg("%s %s, step %d: loss %a, not %a", c->name, c->flags, s + 1, changed->loss[s],
                 calm->loss[s]);
}

static void leaves_the_bits(const char *data, size_t i, bool over_nccl)
{
    const struct change *c = &changes[i];
    auto_arena struct arena *arena = arena_open();
    const char *calm_dir = arena_printf(arena, "%s/calm%zu-%d", data, i, over_nccl);
    const char *dir = arena_printf(arena, "%s/changed%zu-%d", data, i, over_nccl);
    struct run *calm = arena_new(arena, struct run), *parts[MOST_PARTS] = {0};
    int step = 0;
    for (int part = 0; part < MOST_PARTS && c->ranks[part] > 0; part++) {
        struct run *run = arena_new(arena, struct run);
        do_part(c, over_nccl, run, arena, data, dir, c->ranks[part], step + STEPS_A_PART);
        assert_int_equal(run->seen[0].resumed_step, step);
        assert_string_equal(run->seen[0].differs, "");
        step += STEPS_A_PART;
        parts[part] = run;
    }
    do_part(c, over_nccl, calm, arena, data, calm_dir, c->slots, step);
    checkpoints_assert_same(arena_printf(arena, "%s/%s-%dsteps", calm_dir, c->name, step),
                            arena_printf(arena, "%s/%s-%dsteps", dir, c->name, step));
    for (int s = 0; s < step; s++)
        assert_same_step(c, &calm->seen[0], &parts[s / STEPS_A_PART]->seen[0], s);
    const struct seen *last = &parts[(step - 1) / STEPS_A_PART]->seen[0];
    if (last->epoch_loss != calm->seen[0].epoch_loss)
        fail_msg("%s %s: the epoch's loss is %a, not %a", c->name, c->flags, last->epoch_loss,
                 calm->seen[0].epoch_loss);
    /* the rows of others have nothing to evaluate on */
    bool is_evaluated = !c->rows || strcmp(c->rows, "lines") == 0;
    if (is_evaluated != (calm->seen[0].tests > 0) ||
        last->test_samples != calm->seen[0].test_samples)
        fail_msg("%s %s: %d evaluations, the last of %g samples, not %g", c->name, c->flags,
                 calm->seen[0].tests, last->test_samples, calm->seen[0].test_samples);
}

static void changes_leave_the_bits(void **state)
{
    for (size_t i = 0; i < array_length(changes); i += RUNS_EACH)
        if (is_cpu() || (changes[i].gpus & ON_ONE_GPU))
            leaves_the_bits(*state, i, false);
}

static void changes_leave_the_bits_over_nccl(void **state)
{
    for (size_t i = 0; i < array_length(changes); i++)
        if (support_is_emulated() && (changes[i].gpus & OVER_NCCL))
            leaves_the_bits(*state, i, true);
}

/* Three lines a text, of which two have a next one. */
static void make_lines(const char *dir)
{
    auto_str struct str lines;
    str_init(&lines, 1 << 16);
    for (int i = 0; i < 54; i++)
        str_printf(&lines, "the line %d of a text%s\n%s", i, i % 4 ? " that is long" : "",
                   i % 3 == 2 ? "\n" : "");
    free(texts_write(dir, "lines/train.txt", str_text(&lines), lines.length));
    free(texts_write(dir, "lines/test.txt", str_text(&lines), lines.length));
}

static int make_data(void **state)
{
    void *images, *rows;
    if (runs_make_tokens(state) || runs_make_images(&images) || runs_make_rows(&rows))
        return -1;
    const char *to = *state;
    make_lines(to);
    for (int i = 0; i < 2; i++) {
        auto_free char *command = xasprintf("cp -r %s/. %s", i ? (char *)rows : (char *)images, to);
        assert_int_equal(system(command), 0);
        void *from = i ? rows : images;
        runs_remove(&from);
    }
    return 0;
}

/* Without the key, too: another number of ranks computes on the slots of the checkpoint. */
static void the_checkpoint_names_the_slots(void **state)
{
    enum { SLOTS = 3, SAVED_STEP = 2, LAST_STEP = 4 };
    auto_arena struct arena *arena = arena_open();
    const char *flags = "--batch_size=2 --device=cpu --epochs=20 --decay_steps=12";
    const char *dir = arena_printf(arena, "%s/named", (char *)*state);
    struct run *first = arena_new(arena, struct run), *runs[2];
    runs_do_language(first, arena, *state, SLOTS,
                     arena_printf(arena,
                                  "%s --parallel.reduction_slots=%d --max_steps=%d "
                                  "--checkpoint_dir=%s",
                                  flags, SLOTS, SAVED_STEP, dir));
    for (int i = 0; i < 2; i++) {
        runs[i] = arena_new(arena, struct run);
        runs_do_language(runs[i], arena, *state, i ? 2 : SLOTS,
                         arena_printf(arena,
                                      "%s --max_steps=%d --checkpoint_dir=%s%d "
                                      "--resume_from_checkpoint=%s",
                                      flags, LAST_STEP, dir, i, dir));
        assert_int_equal(runs[i]->seen[0].resumed_step, SAVED_STEP);
        assert_string_equal(runs[i]->seen[0].differs, "");
    }
    checkpoints_assert_same(arena_printf(arena, "%s0/llama-%dsteps", dir, LAST_STEP),
                            arena_printf(arena, "%s1/llama-%dsteps", dir, LAST_STEP));
    /* Another number, if it is asked for, is another run. */
    struct run *other = arena_new(arena, struct run);
    runs_do_language(other, arena, *state, 2,
                     arena_printf(arena,
                                  "%s --parallel.reduction_slots=2 --max_steps=%d "
                                  "--resume_from_checkpoint=%s",
                                  flags, LAST_STEP, dir));
    assert_string_equal(other->seen[0].differs,
                        "parallel.reduction_slots: it had 3, this one has 2; "
                        "samples per step and micro-batch: it had 6, this one has 4");
}

#define NAMED "--batch_size=2 --device=cpu --epochs=20 --decay_steps=12 "

/* What an elastic run's launchers have agreed on holds where nobody asks for a number. */
static void an_elastic_run_has_slots(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/elastic", (char *)*state);
    static const char *const flags[] = {"--parallel.reduction_slots=3", "",
                                        "--parallel.reduction_slots=0"};
    struct run *runs[3];
    for (int i = 0; i < 3; i++) {
        runs[i] = arena_new(arena, struct run);
        runs[i]->slots = i ? 3 : 0;
        runs_do_language(
            runs[i], arena, *state, 2,
            arena_printf(arena, NAMED "%s --max_steps=2 --checkpoint_dir=%s%d", flags[i], dir, i));
    }
    checkpoints_assert_same(arena_printf(arena, "%s0/llama-2steps", dir),
                            arena_printf(arena, "%s1/llama-2steps", dir));
    struct run *on = arena_new(arena, struct run); /* 0 switches them off, whoever has some */
    on->slots = 3;
    runs_do_language(on, arena, *state, 2,
                     arena_printf(arena,
                                  NAMED "--parallel.reduction_slots=0 --max_steps=4 "
                                        "--resume_from_checkpoint=%s1",
                                  dir));
    assert_non_null(
        strstr(on->seen[0].differs, "parallel.reduction_slots: it had 3, this one has 0"));
    runs_do_language(runs[2], arena, *state, 2,
                     arena_printf(arena,
                                  NAMED "--parallel.reduction_slots=0 --max_steps=4 "
                                        "--resume_from_checkpoint=%s2",
                                  dir));
    assert_string_equal(runs[2]->seen[0].differs, "");
}

/* Slots that nobody asked for stay where the order of sums is free, but equal bits do not: which is
 * told, of an elastic run's and of a checkpoint's. On the CPU bits stay equal in any case. */
static void free_order_gives_up_the_bits(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/order", (char *)*state);
    static const char *const flags[] = {"--checkpoint_dir", "--resume_from_checkpoint"};
    static const char *const texts[] = {"this elastic run computes as on so many ranks",
                                        "as of the checkpoint"};
    for (int i = 0; i < 2; i++) {
        struct run *run = arena_new(arena, struct run);
        run->slots = i ? 0 : 2;
        runs_do_language(run, arena, *state, 1,
                         arena_printf(arena,
                                      "--batch_size=2 --epochs=20 --decay_steps=12 --device=%s "
                                      "--runtime.deterministic=false --max_steps=%d %s=%s",
                                      support_device(), i + 1, flags[i], dir));
        assert_non_null(strstr(run->seen[0].slots, texts[i]));
        if (is_cpu() ==
            !!strstr(run->seen[0].slots, ", whose bits runtime.deterministic=false gives up"))
            fail_msg("%s", run->seen[0].slots);
    }
}

/* The newest checkpoint named the slots, but it is damaged. */
static void an_older_checkpoint_of_other_slots_is_an_error(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = arena_printf(arena, "%s/older", (char *)*state);
    for (int slots = 3; slots >= 2; slots--)
        runs_do_language(arena_new(arena, struct run), arena, *state, 2,
                         arena_printf(arena,
                                      NAMED "--parallel.reduction_slots=%d --max_steps=%d "
                                            "--checkpoint_dir=%s --resume=latest",
                                      slots, slots == 3 ? 2 : 4, dir));
    auto_free char *command = xasprintf("truncate -s -1 %s/llama-4steps/model/shard-00002-*", dir);
    assert_int_equal(system(command), 0);
    static const char *const flags[] = {"", "--parallel.reduction_slots=2"};
    for (int i = 0; i < 2; i++) {
        struct config *config = arena_new(arena, struct config);
        struct run *run = arena_new(arena, struct run);
        runs_configure_language(
            config, arena, *state, 2,
            arena_printf(arena, NAMED "%s --max_steps=5 --resume=%s", flags[i], dir));
        run->config = &config->value;
        run->size = 2;
        run->seen[0].may_skip = true;
        runs_start(run);
        if (i == 0)
            assert_fails(run->result[1], &run->err[1], ERR_CONFIG,
                         "llama-2steps has 3 reduction slots, and this run began with 2: give "
                         "--parallel.reduction_slots=3");
        else
            assert_int_equal(run->seen[0].resumed_step, 2);
    }
}

static void what_slots_refuse(void **state)
{
    static const struct {
        const char *flags, *error;
    } rows[] = {
        {"--parallel.reduction_slots=3", "parallel.reduction_slots: 3 slots for 4 ranks"},
        {"--parallel.reduction_slots=4 --cpu_offload",
         "parallel.reduction_slots: not with memory.cpu_offload"},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        struct config *config = arena_new(arena, struct config);
        struct run *run = arena_new(arena, struct run);
        runs_configure(config, arena, *state, 4,
                       arena_printf(arena, "--device=cpu %s", rows[i].flags));
        run->config = &config->value;
        run->size = 4;
        runs_start(run);
        for (int rank = 0; rank < 4; rank++) {
            assert_int_equal(run->result[rank], -1);
            assert_int_equal(run->err[rank].code, ERR_CONFIG);
            assert_true(run->err[rank].shared);
            assert_non_null(strstr(run->err[rank].msg, rows[i].error));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_leave_the_bits),
        cmocka_unit_test(changes_leave_the_bits_over_nccl),
        cmocka_unit_test(the_checkpoint_names_the_slots),
        cmocka_unit_test(an_elastic_run_has_slots),
        cmocka_unit_test(free_order_gives_up_the_bits),
        cmocka_unit_test(an_older_checkpoint_of_other_slots_is_an_error),
        cmocka_unit_test(what_slots_refuse),
    };
    return cmocka_run_group_tests(tests, make_data, runs_remove);
}
