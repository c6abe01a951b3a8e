/* Batches of rows as T5 and BERT read them: what they hold, and that no world size, batch size or
 * resume changes which samples there are, their order or which words are hidden. */
#include "agent/trainer/source.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAD = 0,
    MASK = 258, /* byte 255, which no text has */
    MAX_ROWS = 64,
    MAX_WORDS = 32,
    POSITIONS = 32,
};

static const char *no_environment(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

/* Data sets are below root. */
static const struct agent_config *configure(struct arena *arena, const char *root,
                                            const char *flags)
{
    const char *words[MAX_WORDS];
    int count = 0;
    char *rest = arena_printf(arena, "--root %s %s", root, flags);
    for (char *word; (word = strsep(&rest, " ")) && count < MAX_WORDS;)
        words[count++] = word;
    struct config *config = arena_new(arena, struct config);
    struct error err;
    assert_ok(config_parse(count, words, no_environment, NULL, arena, config, &err), &err);
    return &config->value;
}

static struct model model_of(enum model_task task)
{
    return (struct model){
        .task = task,
        .classes = 3,
        .language = {.V = TEXTS_VOCABULARY,
                     .max_tokens = POSITIONS,
                     .start_id = PAD,
                     .pad_id = PAD},
    };
}

/* One rank's source on its own stream. */
struct rank {
    struct device *device;
    struct stream *stream;
    struct model model;
    struct source *source;
};

static int try_open(const struct agent_config *config, enum model_task task, int r, int size,
                    int32_t mask, struct rank *rank, struct error *err)
{
    assert_ok(device_open("cpu", 1, &rank->device, err), err);
    assert_ok(stream_open(rank->device, "test", &rank->stream, err), err);
    rank->model = model_of(task);
    struct source_place place = {
        .stream = rank->stream, .rank = r, .size = size, .most = 2, .encoder = texts_encoder()};
    place.encoder.adds_eos = true;
    place.encoder.pad = PAD;
    place.encoder.mask = mask;
    place.encoder.vocabulary = TEXTS_VOCABULARY;
    rank->source = NULL;
    return source_open(config, SOURCE_TRAIN, &rank->model, &place, &rank->source, err);
}

static void close_rank(struct rank *rank)
{
    source_close(rank->source);
    stream_close(rank->stream);
    device_close(rank->device);
}

/* ---- rows as text ---- */

static void show_ids(const char *name, const int32_t *ids, int64_t count, struct str *out)
{
    if (!ids)
        return;
    str_printf(out, " %s=", name);
    for (int64_t i = 0; i < count; i++) {
        char c = ids[i] < 0            ? '.'
                 : ids[i] == PAD       ? '_'
                 : ids[i] == MASK      ? '?'
                 : ids[i] == TEXTS_BOS ? '<'
                 : ids[i] == TEXTS_EOS ? '>'
                                       : (char)(ids[i] - TEXTS_FIRST);
        str_add_bytes(out, c > 0 && c < 127 && c >= ' ' ? &c : "*", 1);
    }
}

/* A row without its padding, or with it. */
static char *show_row(const struct batch *b, int64_t row, bool padded)
{
    struct str out;
    str_init(&out, 4096);
    int64_t T = b->token_counts && !padded ? b->token_counts[row] : b->T;
    int64_t S = b->source_counts && !padded ? b->source_counts[row] : b->T_source;
    show_ids("source", b->source ? b->source + row * b->T_source : NULL, S, &out);
    if (padded || !b->source)
        show_ids("tokens", b->tokens + row * b->T, T, &out);
    show_ids("target", b->target ? b->target + row * b->T : NULL, T, &out);
    if (b->token_types) {
        str_add(&out, " types=");
        for (int64_t t = 0; t < T; t++)
            str_printf(&out, "%d", b->token_types[row * b->T + t]);
    }
    if (b->labels)
        str_printf(&out, " label=%d", b->labels[row]);
    return out.text ? out.text : xstrdup("");
}

/* The rows of all ranks in the order of the epoch, from `samples` on. */
struct seen {
    char *rows[MAX_ROWS];
    int64_t count;
    int64_t targets, labels, tokens;
};

static void free_seen(struct seen *seen)
{
    for (int64_t i = 0; i < MAX_ROWS; i++)
        free(seen->rows[i]);
}

/* Reads one rank's way through the rest of an epoch, at most `most` batches of it. */
static void read_rank(struct rank *rank, int r, int size, int64_t epoch, int64_t samples,
                      int64_t most, bool padded, struct seen *seen)
{
    struct error err;
    struct source_fetched fetched;
    struct source *source = rank->source;
    const char *state = samples > 0 ? source_state(source) : "";
    int64_t batches = 0;
    assert_ok(source_seek(source, epoch, samples, state, &err), &err);
    do {
        assert_ok(source_next(source, most - batches < 2 ? most - batches : 2, &fetched, &err),
                  &err);
        seen->targets += fetched.targets;
        seen->labels += fetched.labels;
        seen->tokens += fetched.tokens;
        for (int64_t i = 0; i < fetched.batches; i++, batches++) {
            struct batch batch = source_batch(source, i);
            assert_ok(stream_sync(rank->stream, &err), &err);
            for (int64_t row = 0; row < batch.rows; row++) {
                int64_t place = (batches * source->batch_rows + row) * size + r;
                assert_true(place < MAX_ROWS && !seen->rows[place]);
                seen->rows[place] = show_row(&batch, row, padded);
                seen->count++;
            }
        }
    } while (fetched.batches > 0 && batches < most);
}

static struct seen read_world(const struct agent_config *config, enum model_task task, int size,
                              int64_t epoch, int64_t samples, int64_t most, bool padded)
{
    struct seen seen = {.count = 0};
    for (int r = 0; r < size; r++) {
        struct rank rank;
        struct error err;
        assert_ok(try_open(config, task, r, size, MASK, &rank, &err), &err);
        read_rank(&rank, r, size, epoch, samples, most, padded, &seen);
        close_rank(&rank);
    }
    return seen;
}

/* ---- data ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    free(texts_write(dir, name, text, strlen(text)));
}

/* 11 rows that differ, for each task. */
enum { ROWS = 11 };

static void write_rows(const char *dir)
{
    auto_str struct str rows, lines;
    str_init(&rows, 4096);
    str_init(&lines, 4096);
    str_add(&rows, "text\tsummary\tlabel\n");
    for (int i = 0; i < ROWS; i++) {
        str_printf(&rows, "row %c%.*s\t%c%.*s\t%d\n", 'a' + i, i, "xxxxxxxxxxxx", 'A' + i, i % 4,
                   "yyyy", i % 3);
        str_printf(&lines, "line %c of the text%s\n", 'a' + i, i % 4 == 3 ? "\n" : "");
    }
    write_file(dir, "rows/train.tsv", str_text(&rows));
    write_file(dir, "lines/train.txt", str_text(&lines));
}

static const struct {
    enum model_task task;
    const char *flags;
    int64_t samples;
} tasks[] = {
    {MODEL_TRANSLATION, "--dataset rows", ROWS},
    {MODEL_CLASSES, "--dataset rows", ROWS},
    {MODEL_MASKED, "--dataset lines --packing none --mlm_probability 0.4", ROWS},
    {MODEL_PRETRAINING, "--dataset lines --mlm_probability 0.4", 8},
};

/* ---- the same whatever the layout ---- */

static void check_same(const struct seen *one, const struct seen *many, int64_t first,
                       int64_t samples)
{
    for (int64_t i = 0; i < many->count; i++) {
        assert_non_null(many->rows[i]); /* without a gap */
        assert_string_equal(many->rows[i], one->rows[(first + i) % samples]);
    }
}

static void test_worlds_see_the_same(void **state)
{
    write_rows(*state);
    for (size_t i = 0; i < array_length(tasks); i++) {
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            auto_arena struct arena *arena = arena_open();
            const struct agent_config *one =
                configure(arena, *state, arena_printf(arena, "--batch_size 4 %s", tasks[i].flags));
            const struct agent_config *other =
                configure(arena, *state,
                          arena_printf(arena, "--batch_size 3 --num_workers 0 %s", tasks[i].flags));
            struct seen whole = read_world(one, tasks[i].task, 1, epoch, 0, 100, false);
            assert_int_equal(whole.count, tasks[i].samples);
            for (int size = 1; size <= 4; size++) {
                struct seen seen = read_world(other, tasks[i].task, size, epoch, 0, 100, false);
                /* DistributedSampler's rule: filled up with the beginning */
                assert_int_equal(seen.count, (tasks[i].samples + size - 1) / size * size);
                check_same(&whole, &seen, 0, tasks[i].samples);
                free_seen(&seen);
            }
            free_seen(&whole);
        }
    }
}

static void test_another_world_goes_on(void **state)
{
    write_rows(*state);
    for (size_t i = 0; i < array_length(tasks); i++) {
        auto_arena struct arena *arena = arena_open();
        const struct agent_config *config =
            configure(arena, *state, arena_printf(arena, "--batch_size 2 %s", tasks[i].flags));
        struct seen whole = read_world(config, tasks[i].task, 1, 1, 0, 100, false);
        for (int before = 1; before <= 2; before++) {
            for (int after = 1; after <= 3; after++) {
                struct seen begun = read_world(config, tasks[i].task, before, 1, 0, 1, false);
                struct seen rest =
                    read_world(config, tasks[i].task, after, 1, begun.count, 100, false);
                check_same(&whole, &begun, 0, tasks[i].samples);
                check_same(&whole, &rest, begun.count, tasks[i].samples);
                int64_t left = tasks[i].samples - begun.count;
                assert_int_equal(rest.count, (left + after - 1) / after * after);
                free_seen(&begun);
                free_seen(&rest);
            }
        }
        struct seen over = read_world(config, tasks[i].task, 2, 1, tasks[i].samples, 100, false);
        assert_int_equal(over.count, 0); /* the epoch is done */
        free_seen(&whole);
    }
}

/* An epoch has its own order and its own hidden words. */
static void test_epochs_differ(void **state)
{
    write_rows(*state);
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *config =
        configure(arena, *state, "--batch_size 4 --dataset lines --packing none --shuffle false");
    struct seen one = read_world(config, MODEL_MASKED, 1, 0, 0, 100, false);
    struct seen two = read_world(config, MODEL_MASKED, 1, 1, 0, 100, false);
    int same = 0;
    for (int64_t i = 0; i < ROWS; i++)
        same += strcmp(one.rows[i], two.rows[i]) == 0;
    assert_true(same < ROWS / 2);
    free_seen(&one);
    free_seen(&two);
}

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
        write_file(*state, name, batches[i].content);
        const struct agent_config *config =
            configure(arena, *state,
                      arena_printf(arena, "--dataset %s --shuffle false --batch_size 2 %s", dir,
                                   batches[i].flags));
        struct seen seen = read_world(config, batches[i].task, 1, 0, 0, 100, true);
        assert_int_equal(seen.count, 2);
        for (int row = 0; row < 2; row++)
            assert_string_equal(seen.rows[row], batches[i].rows[row]);
        assert_int_equal(seen.targets, batches[i].targets);
        assert_int_equal(seen.tokens, batches[i].tokens);
        free_seen(&seen);
    }
}

/* Hidden words stand where their targets are, special tokens never do; pairs are of one document
 * where they say so. */
static void test_hidden_words_and_pairs(void **state)
{
    write_rows(*state);
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *config = configure(
        arena, *state, "--dataset lines --batch_size 3 --mlm_probability 0.3 --max_seq_length 24");
    struct rank rank;
    struct error err;
    struct source_fetched fetched;
    assert_ok(try_open(config, MODEL_PRETRAINING, 0, 1, MASK, &rank, &err), &err);
    int64_t others = 0, rows = 0;
    for (int64_t epoch = 0; epoch < 8; epoch++) {
        assert_ok(source_seek(rank.source, epoch, 0, "", &err), &err);
        while (source_next(rank.source, 1, &fetched, &err) == 0 && fetched.batches) {
            struct batch b = source_batch(rank.source, 0);
            assert_ok(stream_sync(rank.stream, &err), &err);
            int64_t targets = 0;
            for (int64_t i = 0; i < b.rows * b.T; i++) {
                bool special = b.tokens[i] == TEXTS_BOS || b.tokens[i] == TEXTS_EOS;
                assert_true(b.target[i] == TOKENS_IGNORED || b.target[i] >= TEXTS_FIRST);
                assert_true(!special || b.target[i] == TOKENS_IGNORED ||
                            b.target[i] != b.tokens[i]);
                assert_true(b.tokens[i] != MASK || b.target[i] != TOKENS_IGNORED);
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
    close_rank(&rank);
}

/* ---- what does not fit ---- */

static void test_what_does_not_fit(void **state)
{
    write_rows(*state);
    static const struct {
        enum model_task task;
        const char *flags;
        int32_t mask;
        const char *says;
    } rows[] = {
        {MODEL_MASKED, "--dataset lines --max_seq_length 33", MASK,
         "data.max_seq_length: 33 tokens, but the model has only 32 positions"},
        {MODEL_MASKED, "--dataset lines --max_seq_length 7", MASK,
         "data.max_seq_length: 7 tokens are too few: at least 8"},
        {MODEL_MASKED, "--dataset lines", -1, "data.tokenizer: it has no mask token ([MASK])"},
        {MODEL_TRANSLATION, "--dataset rows --label_pad_token_id 259", MASK,
         "data.label_pad_token_id: the model has no token 259, only 0 .. 258"},
        {MODEL_TRANSLATION, "--dataset none", MASK, "no data set none"},
        {MODEL_TRANSLATION, "--dataset rows --text_column body", MASK,
         "rows/train.tsv:1: no column \"body\"; it has text, summary, label"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct rank rank;
        struct error err;
        int result = try_open(configure(arena, *state, rows[i].flags), rows[i].task, 0, 1,
                              rows[i].mask, &rank, &err);
        assert_int_equal(result, -1);
        if (!strstr(err.msg, rows[i].says))
            fail_msg("%s", err.msg);
        close_rank(&rank);
    }
}

static void test_other_data_is_refused_within_an_epoch(void **state)
{
    write_rows(*state);
    auto_arena struct arena *arena = arena_open();
    struct rank rank;
    struct error err;
    assert_ok(try_open(configure(arena, *state, "--dataset rows"), MODEL_TRANSLATION, 0, 1, MASK,
                       &rank, &err),
              &err);
    auto_free char *told = xstrdup(source_state(rank.source));
    assert_ok(source_seek(rank.source, 0, 3, told, &err), &err);
    close_rank(&rank);
    assert_ok(try_open(configure(arena, *state, "--dataset rows --max_target_length 2"),
                       MODEL_TRANSLATION, 0, 1, MASK, &rank, &err),
              &err);
    assert_fails(source_seek(rank.source, 0, 3, told, &err), &err, ERR_INPUT,
                 "rows: not the data that the checkpoint is in the middle of (samples=11 data=");
    assert_ok(source_seek(rank.source, 1, 0, "", &err), &err);
    close_rank(&rank);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_worlds_see_the_same),
        IN_DIR(test_another_world_goes_on),
        IN_DIR(test_epochs_differ),
        IN_DIR(test_batches),
        IN_DIR(test_hidden_words_and_pairs),
        IN_DIR(test_what_does_not_fit),
        IN_DIR(test_other_data_is_refused_within_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
