/* Training from texts: the same losses at every world size, going on in the middle of a stream, and
 * what people are told of data that is missing or broken. */
#include "agent/text/tokenizer.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/agent/runs.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 180, STEPS = 10 };

#define FROM_TEXT                                                                                  \
    "--vocab_size 1024 --tokenizer tests/data/tokenizers/llama3 --dataset %s/texts "               \
    "--device cpu --shuffle_buffer 16 --decay_steps 12 "

/* Small units are told, too, and only the last notice is kept. */
#define NO_ADVICE "--sharding_strategy NO_SHARD "

/* Texts in two files, some with lines that are no JSON. */
static void write_texts(const char *dir, bool broken)
{
    for (int file = 0; file < 2; file++) {
        auto_free char *lines = texts_lines(file * TEXTS / 2, TEXTS / 2);
        auto_free char *all = xasprintf("%s%s", broken ? "{broken\n" : "", lines);
        auto_free char *name = xasprintf("texts/train-%d.jsonl.gz", file);
        free(texts_write_gzip(dir, name, all, strlen(all), 1));
    }
}

static void train(struct run *run, struct arena *arena, const char *dir, int size,
                  const char *flags)
{
    runs_do_language(run, arena, dir, size, arena_printf(arena, FROM_TEXT "%s", dir, flags));
}

/* Where an epoch ends is not known before, so that its end was fetched ahead, too: the second one
 * begins by asking how many targets all have, once the first's sums are there. */
static void assert_asks_anew(const struct seen *seen)
{
    int beginnings = 0;
    for (int s = 1; s < seen->last_step; s++) {
        int64_t sums = seen->all_reduces[s] - seen->all_reduces[s - 1];
        beginnings += sums == 4;
        assert_true(sums == 2 || sums == 4);
    }
    assert_int_equal(beginnings, 1);
}

static void worlds_see_the_same_texts(void **state)
{
    auto_arena struct arena *arena = arena_open();
    write_texts(*state, false);
    struct run whole = {0};
    train(&whole, arena, *state, 1, "--num_workers 0");
    assert_in_range(whole.seen[0].last_step, STEPS, RUNS_MAX_STEPS);
    for (int size = 2; size <= 4; size++) {
        struct run run = {0};
        train(&run, arena, *state, size,
              arena_printf(arena, "--sharding_strategy FULL_SHARD --num_workers %d", size));
        assert_asks_anew(&run.seen[0]);
        assert_int_equal(run.seen[0].last_step, whole.seen[0].last_step);
        for (int s = 0; s < whole.seen[0].last_step; s++)
            assert_true(fabs(run.seen[0].loss[s] - whole.seen[0].loss[s]) < 2e-5);
    }
}

static void a_resumed_run_reads_on(void **state)
{
    auto_arena struct arena *arena = arena_open();
    write_texts(*state, false);
    struct run whole = {0};
    train(&whole, arena, *state, 2, "");
    int steps = whole.seen[0].last_step;
    for (int stop = 1; stop < steps; stop += 2) {
        const char *flags =
            arena_printf(arena, "--checkpoint_dir %s/ck%d", (const char *)*state, stop);
        struct run first = {0}, second = {.restarted = true};
        train(&first, arena, *state, 2, arena_printf(arena, "%s --max_steps %d", flags, stop));
        train(&second, arena, *state, 2, flags);
        assert_int_equal(second.seen[0].resumed_step, stop);
        assert_int_equal(second.seen[0].last_step, steps);
        for (int s = stop; s < steps; s++)
            if (second.seen[0].loss[s] != whole.seen[0].loss[s])
                fail_msg("stopped at %d, step %d: %.17g, uninterrupted: %.17g", stop, s,
                         second.seen[0].loss[s], whole.seen[0].loss[s]);
    }
}

static void notices_tell_of_the_data(void **state)
{
    auto_arena struct arena *arena = arena_open();
    write_texts(*state, false);
    struct run run = {0};
    train(&run, arena, *state, 2, NO_ADVICE "--eval_strategy no");
    assert_string_equal(run.seen[0].notice, "");
    assert_string_equal(run.seen[0].facts.format, "jsonl");
    run = (struct run){0};
    train(&run, arena, *state, 2, NO_ADVICE "--eval_strategy epoch");
    assert_non_null(strstr(run.seen[1].notice, "there will be no evaluation: "));
    assert_non_null(strstr(run.seen[1].notice, "has no split validation"));
    assert_true(run.seen[0].test_samples == 0);
    run = (struct run){0};
    train(&run, arena, *state, 2, NO_ADVICE "--eval_strategy epoch --eval_split train[:20]");
    assert_string_equal(run.seen[0].notice, "");
    assert_true(run.seen[0].test_samples > 0);
    free(texts_write(*state, "texts/validation.jsonl", "{\"text\":\"abc\"}\n", 15));
    run = (struct run){0};
    train(&run, arena, *state, 2, NO_ADVICE "--eval_strategy steps --eval_steps 2");
    assert_non_null(strstr(run.seen[0].notice, "there will be no evaluation: "));
    assert_non_null(strstr(run.seen[0].notice, "split validation has no window of "));
    assert_in_range(run.seen[0].last_step, STEPS, RUNS_MAX_STEPS);
    write_texts(*state, true);
    run = (struct run){0};
    train(&run, arena, *state, 1, "--epochs 3");
    assert_non_null(strstr(run.seen[0].notice, "2 of 182 lines of the data were left out"));
    assert_null(strstr(run.seen[0].notice, " so far"));
    run = (struct run){0};
    train(&run, arena, *state, 1, "--max_steps 1");
    assert_non_null(strstr(run.seen[0].notice, ".jsonl.gz:1: no JSON object"));
    assert_non_null(strstr(run.seen[0].notice, " lines of the data were left out so far"));
}

/* By the names that Transformers' example scripts have for it; that file is not among the rows that
 * are trained on. One that is not there was asked for. */
static void another_file_is_evaluated_on(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state;
    write_texts(dir, false);
    auto_free char *lines = texts_lines(TEXTS, TEXTS / 4);
    free(texts_write(dir, "held-out.jsonl", lines, strlen(lines)));
    struct run without = {0}, run = {0};
    train(&without, arena, dir, 2, NO_ADVICE "--eval_strategy no");
    train(&run, arena, dir, 2,
          arena_printf(arena, NO_ADVICE "--eval_strategy epoch --validation_file %s/held-out.jsonl",
                       dir));
    assert_string_equal(run.seen[0].notice, "");
    assert_true(run.seen[0].tests > 0);
    assert_int_equal(run.seen[0].last_step, without.seen[0].last_step);
    struct config config;
    struct run refused = {.config = &config.value, .size = 2};
    runs_configure_language(
        &config, arena, dir, 2,
        arena_printf(arena, FROM_TEXT "--eval_strategy epoch --validation_file %s/none.jsonl", dir,
                     dir));
    runs_start(&refused);
    for (int rank = 0; rank < 2; rank++)
        assert_fails(refused.result[rank], &refused.err[rank], ERR_NOT_FOUND,
                     "/none.jsonl: neither a file, a glob nor a directory");
}

/* A model of sizes alone: transformers would end a text by what Llama 2's tokenizer has. */
static void the_tokenizers_ends_are_saved(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state, *model = arena_printf(arena, "%s/model", dir);
    write_texts(dir, false);
    struct run run = {0};
    train(&run, arena, dir, 1, arena_printf(arena, "--max_steps 1 --save_model %s", model));
    struct tokenizer *t;
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    assert_ok(tokenizer_open("tests/data/tokenizers/llama3", &t, &err), &err);
    const struct tokenizer_special special = tokenizer_special(t);
    tokenizer_close(t);
    assert_true(special.bos > 2 && special.eos > 2);
    assert_ok(file_read(arena_printf(arena, "%s/config.json", model), 1 << 16, &text, &bytes, &err),
              &err);
    struct json *config = json_parse(text, bytes, JSON_STRICT, &err);
    assert_int_equal(json_as_integer(json_get(config, "bos_token_id")), special.bos);
    assert_int_equal(json_as_integer(json_get(config, "eos_token_id")), special.eos);
    json_free(config);
}

static void a_part_of_a_stream_is_refused(void **state)
{
    auto_arena struct arena *arena = arena_open();
    write_texts(*state, false);
    struct config config;
    struct run run = {.config = &config.value, .size = 2};
    runs_configure_language(&config, arena, *state, 2,
                            arena_printf(arena, FROM_TEXT "--epochs 0.5", (char *)*state));
    runs_start(&run);
    for (int rank = 0; rank < 2; rank++)
        assert_fails(run.result[rank], &run.err[rank], ERR_CONFIG,
                     "schedule.num_train_epochs: 0.5: how long an epoch of this data is");
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(worlds_see_the_same_texts),     IN_DIR(a_resumed_run_reads_on),
        IN_DIR(notices_tell_of_the_data),      IN_DIR(another_file_is_evaluated_on),
        IN_DIR(the_tokenizers_ends_are_saved), IN_DIR(a_part_of_a_stream_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
