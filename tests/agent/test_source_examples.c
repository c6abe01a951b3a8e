/* Batches of rows as T5 and BERT read them: what they hold, and what is refused. */
#include "tests/agent/source_rows.h"

#include "base/mem.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* ---- what batches hold ---- */

static const struct {
    enum model_task task;
    const char *file, *content, *flags;
    const char *rows[2];
    int64_t targets, tokens; /* of both */
} batches[] = {
    {MODEL_TRANSLATION,
     "train.tsv",
     "text\tsummary\nlonger\ts\nt\tuvw\n",
     "--source_prefix p: --padding longest --pad_to_multiple_of 4",
     {" source=p:longer>___ tokens=_s>_ target=s>..",
      " source=p:t>________ tokens=_uvw target=uvw>"},
     6,
     32},
    {MODEL_TRANSLATION,
     "train.tsv",
     "text\tsummary\nlonger\ts\nt\tuvw\n",
     "--source_prefix= --padding longest --pad_to_multiple_of 1 --label_pad_token_id 0",
     {" source=longer> tokens=_s>_ target=s>__", " source=t>_____ tokens=_uvw target=uvw>"},
     8,
     22},
    {MODEL_TRANSLATION,
     "train.tsv",
     "text\tsummary\nlonger\ts\nt\tuvw\n",
     "--source_prefix= --padding max_length --max_source_length 5 --max_target_length 6",
     {" source=long> tokens=_s>___ target=s>....", " source=t>___ tokens=_uvw>_ target=uvw>.."},
     6,
     22},
    {MODEL_CLASSES,
     "train.jsonl",
     "{\"text\":\"a\",\"pair\":\"bc\",\"label\":2}\n{\"text\":\"def\",\"pair\":\"\",\"label\":\"0\"}\n",
     "--text_pair_column pair --pad_to_multiple_of 4",
     {" tokens=<a>bc>__ types=00011100 label=2", " tokens=<def>>__ types=00000100 label=0"},
     2,
     16},
};

static void test_batches(void **state)
{
    for (size_t i = 0; i < array_length(batches); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_free char *dir = xasprintf("%s/%zu", (const char *)*state, i);
        auto_free char *name = xasprintf("%zu/%s", i, batches[i].file);
        source_rows_write_file(*state, name, batches[i].content);
        const struct agent_config *config = source_rows_configure(
            arena, *state,
            arena_printf(arena, "--dataset %s --shuffle false --batch_size 2 %s", dir,
                         batches[i].flags));
        struct source_rows_seen seen =
            source_rows_read(config, batches[i].task, 1, 0, 0, 100, true);
        assert_int_equal(seen.count, 2);
        for (int row = 0; row < 2; row++)
            assert_string_equal(seen.rows[row], batches[i].rows[row]);
        assert_int_equal(seen.targets, batches[i].targets);
        assert_int_equal(seen.tokens, batches[i].tokens);
        source_rows_free(&seen);
    }
}

/* Hidden words stand where their targets are, special tokens never do; pairs are of one document
 * where they say so. */
static void test_hidden_words_and_pairs(void **state)
{
    source_rows_write(*state);
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *config = source_rows_configure(
        arena, *state, "--dataset lines --batch_size 3 --mlm_probability 0.3 --max_seq_length 24");
    struct source_rows_rank rank;
    struct error err;
    struct step_batches fetched;
    assert_ok(source_rows_open(config, MODEL_PRETRAINING, 0, 1, SOURCE_ROWS_MASK, &rank, &err),
              &err);
    int64_t others = 0, rows = 0;
    for (int64_t epoch = 0; epoch < 8; epoch++) {
        assert_ok(batch_source_seek(rank.source, epoch, 0, "", &err), &err);
        while (batch_source_next(rank.source, 1, &fetched, &err) == 0 && fetched.batches) {
            struct batch b = batch_source_batch(rank.source, 0);
            assert_ok(stream_sync(rank.stream, &err), &err);
            int64_t targets = 0;
            for (int64_t i = 0; i < b.rows * b.T; i++) {
                bool special = b.tokens[i] == TEXTS_BOS || b.tokens[i] == TEXTS_EOS;
                assert_true(b.target[i] == TOKENS_IGNORED || b.target[i] >= TEXTS_FIRST);
                assert_true(!special || b.target[i] == TOKENS_IGNORED ||
                            b.target[i] != b.tokens[i]);
                assert_true(b.tokens[i] != SOURCE_ROWS_MASK || b.target[i] != TOKENS_IGNORED);
                targets += b.target[i] != TOKENS_IGNORED;
            }
            assert_int_equal(targets, fetched.targets);
            assert_int_equal(fetched.labels, b.rows);
            for (int64_t row = 0; row < b.rows; row++, rows++)
                others += b.labels[row];
        }
    }
    assert_int_equal(rows, 64);
    assert_in_range(others, 16, 48);
    source_rows_close(&rank);
}

/* ---- what does not fit ---- */

static void test_what_does_not_fit(void **state)
{
    source_rows_write(*state);
    static const struct {
        enum model_task task;
        const char *flags;
        int32_t mask;
        const char *says;
    } rows[] = {
        {MODEL_MASKED, "--dataset lines --max_seq_length 33", SOURCE_ROWS_MASK,
         "data.max_seq_length: 33 tokens, but the model has only 32 positions"},
        {MODEL_MASKED, "--dataset lines --max_seq_length 7", SOURCE_ROWS_MASK,
         "data.max_seq_length: 7 tokens are too few: at least 8"},
        {MODEL_MASKED, "--dataset lines", -1, "data.tokenizer: it has no mask token ([MASK])"},
        {MODEL_TRANSLATION, "--dataset rows --label_pad_token_id 259", SOURCE_ROWS_MASK,
         "data.label_pad_token_id: the model has no token 259, only 0 .. 258"},
        {MODEL_TRANSLATION, "--dataset none", SOURCE_ROWS_MASK, "no data set none"},
        {MODEL_TRANSLATION, "--dataset rows --text_column body", SOURCE_ROWS_MASK,
         "rows/train.tsv:1: no column \"body\"; it has text, summary, label"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct source_rows_rank rank;
        struct error err;
        int result = source_rows_open(source_rows_configure(arena, *state, rows[i].flags),
                                      rows[i].task, 0, 1, rows[i].mask, &rank, &err);
        assert_int_equal(result, -1);
        if (!strstr(err.msg, rows[i].says))
            fail_msg("%s", err.msg);
        source_rows_close(&rank);
    }
}

static void test_other_data_is_refused_within_an_epoch(void **state)
{
    source_rows_write(*state);
    auto_arena struct arena *arena = arena_open();
    struct source_rows_rank rank;
    struct error err;
    assert_ok(source_rows_open(source_rows_configure(arena, *state, "--dataset rows"),
                               MODEL_TRANSLATION, 0, 1, SOURCE_ROWS_MASK, &rank, &err),
              &err);
    auto_free char *told = xstrdup(batch_source_state(rank.source));
    assert_ok(batch_source_seek(rank.source, 0, 3, told, &err), &err);
    source_rows_close(&rank);
    assert_ok(source_rows_open(
                  source_rows_configure(arena, *state, "--dataset rows --max_target_length 2"),
                  MODEL_TRANSLATION, 0, 1, SOURCE_ROWS_MASK, &rank, &err),
              &err);
    assert_fails(batch_source_seek(rank.source, 0, 3, told, &err), &err, ERR_INPUT,
                 "rows: not the data that the checkpoint is in the middle of (samples=11 data=");
    assert_ok(batch_source_seek(rank.source, 1, 0, "", &err), &err);
    source_rows_close(&rank);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_batches),
        IN_DIR(test_hidden_words_and_pairs),
        IN_DIR(test_what_does_not_fit),
        IN_DIR(test_other_data_is_refused_within_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
