/* Training T5 and BERT from rows of text: the same losses at every world size, and going on within
 * an epoch at another one. */
#include "tests/agent/runs.h"
#include "tests/agent/token_texts.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 36, EVAL_ROWS = 17, STEPS_PER_EPOCH = 3, STEPS = 2 * STEPS_PER_EPOCH };

#define T5                                                                                         \
    "--model.type=t5 --vocab_size=550 --tokenizer=tests/data/tokenizers/unigram_t5 "               \
    "--max_source_length=24 --max_target_length=12 "
#define BERT                                                                                       \
    "--model.type=bert --vocab_size=500 --tokenizer=tests/data/tokenizers/bert_uncased "           \
    "--max_position_embeddings=32 --max_seq_length=24 "

static const struct {
    const char *data, *flags;
} tasks[] = {
    {"rows", T5},
    {"rows", T5 "--label_pad_token_id=0 --padding=max_length"},
    {"rows", BERT "--head=sequence_classification --label_names=odd,even"},
    {"lines", BERT "--head=masked_lm --packing=none --train_size=36"},
    {"lines", BERT "--head=pretraining"},
};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* 36 samples of each kind: lines come in threes, of which two have a next one. */
static void write_rows(const char *dir)
{
    auto_str struct str rows, lines;
    str_init(&rows, 1 << 16);
    str_init(&lines, 1 << 16);
    size_t half = 0;
    for (int i = 0; i < ROWS; i++) {
        half = i == EVAL_ROWS ? rows.length : half;
        str_printf(&rows,
                   "{\"text\":\"row number %d of the data%s\",\"summary\":\"number %d\","
                   "\"label\":\"%s\"}\n",
                   i, i % 3 ? " is longer than others" : "", i, i % 2 ? "odd" : "even");
    }
    size_t some = 0;
    for (int i = 0; i < ROWS * 3 / 2; i++) {
        some = i == EVAL_ROWS ? lines.length : some;
        str_printf(&lines, "the line %d of a text%s\n%s", i, i % 4 ? " that is long" : "",
                   i % 3 == 2 ? "\n" : "");
    }
    free(texts_write(dir, "rows/train.jsonl", str_text(&rows), rows.length));
    free(texts_write(dir, "rows/test.jsonl", str_text(&rows), half));
    free(texts_write(dir, "lines/train.txt", str_text(&lines), lines.length));
    free(texts_write(dir, "lines/test.txt", str_text(&lines), some));
}

static void train(struct run *run, struct arena *arena, const char *dir, int task, int size,
                  const char *flags)
{
    runs_do_language(
        run, arena, dir, size,
        arena_printf(arena,
                     "%s --num_key_value_heads=0 --dropout=0 --dataset=%s/%s --device=cpu %s",
                     tasks[task].flags, dir, tasks[task].data, flags));
}

static void check_losses(const struct run *run, const struct run *whole, int task, int first)
{
    assert_int_equal(run->seen[0].last_step, STEPS);
    for (int s = first; s < STEPS; s++)
        if (!(fabs(run->seen[0].loss[s] - whole->seen[0].loss[s]) < 2e-5))
            fail_msg("task %d, %d ranks, step %d: %.17g, on one rank %.17g", task, run->size, s + 1,
                     run->seen[0].loss[s], whole->seen[0].loss[s]);
}

static void worlds_see_the_same_rows(void **state)
{
    write_rows(*state);
    for (int task = 0; task < TASKS; task++) {
        auto_arena struct arena *arena = arena_open();
        struct run whole = {0};
        train(&whole, arena, *state, task, 1, "");
        assert_true(whole.seen[0].loss[STEPS - 1] != whole.seen[0].loss[0]);
        for (int size = 2; size <= 4; size += 2) {
            struct run run = {0};
            train(&run, arena, *state, task, size, "--sharding_strategy=FULL_SHARD");
            check_losses(&run, &whole, task, 0);
            for (int s = 1; s < STEPS_PER_EPOCH; s++) /* of norms, and of the rest */
                assert_int_equal(run.seen[0].all_reduces[s] - run.seen[0].all_reduces[s - 1], 2);
        }
    }
}

/* Stopped within an epoch at two ranks; three go on. */
static void another_world_goes_on(void **state)
{
    write_rows(*state);
    for (int task = 0; task < TASKS; task++) {
        auto_arena struct arena *arena = arena_open();
        struct run whole = {0};
        train(&whole, arena, *state, task, 1, "");
        int stop = task % 2 ? 1 : STEPS_PER_EPOCH + 1;
        const char *flags =
            arena_printf(arena, "--checkpoint_dir=%s/ck%d", (const char *)*state, task);
        struct run first = {0}, second = {.restarted = true};
        train(&first, arena, *state, task, 2,
              arena_printf(arena, "%s --max_steps=%d --decay_steps=%d", flags, stop, STEPS));
        train(&second, arena, *state, task, 3, flags);
        assert_int_equal(second.seen[0].resumed_step, stop);
        check_losses(&second, &whole, task, stop);
    }
}

/* The split test stands in for validation. Ranks that do not divide its rows have some twice, which
 * count once. */
static void rows_are_evaluated_once(void **state)
{
    write_rows(*state);
    for (int task = 0; task < TASKS; task++) {
        double whole = 0;
        for (int size = 1; size <= 4; size++) {
            auto_arena struct arena *arena = arena_open();
            struct run run = {0};
            train(&run, arena, *state, task, size,
                  "--eval_strategy=epoch --eval_batch_size=4 --sharding_strategy=NO_SHARD "
                  "--max_steps=1");
            assert_string_equal(run.seen[0].notice, "");
            double loss = run.seen[0].test_loss;
            whole = size == 1 ? loss : whole;
            if (!(loss > 0 && fabs(loss - whole) < 2e-5))
                fail_msg("task %d, %d ranks: %.17g, on one rank %.17g", task, size, loss, whole);
        }
    }
}

/* Batches of one size: a step takes what the one before gave back. */
static void no_step_after_the_first_asks_for_memory(void **state)
{
    write_rows(*state);
    for (int task = 1; task < TASKS; task += 2) { /* a T5, a BERT */
        auto_arena struct arena *arena = arena_open();
        struct run run = {0};
        train(&run, arena, *state, task, 2, "--padding=max_length");
        for (int rank = 0; rank < 2; rank++)
            world_assert_no_fresh_blocks(run.seen[rank].fresh_blocks, STEPS,
                                         task == 1 ? "T5" : "BERT");
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(worlds_see_the_same_rows),
        IN_DIR(another_world_goes_on),
        IN_DIR(rows_are_evaluated_once),
        IN_DIR(no_step_after_the_first_asks_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
