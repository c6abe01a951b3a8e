#include "tests/agent/source_rows.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/agent/config_line.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { PAD = 0, POSITIONS = 32 };

/* ---- data ---- */

void source_rows_write_file(const char *dir, const char *name, const char *text)
{
    free(texts_write(dir, name, text, strlen(text)));
}

void source_rows_write(const char *dir)
{
    auto_str struct str rows, lines;
    str_init(&rows, 4096);
    str_init(&lines, 4096);
    str_add(&rows, "text\tsummary\tlabel\n");
    for (int i = 0; i < SOURCE_ROWS; i++) {
        str_printf(&rows, "row %c%.*s\t%c%.*s\t%d\n", 'a' + i, i, "xxxxxxxxxxxx", 'A' + i, i % 4,
                   "yyyy", i % 3);
        str_printf(&lines, "line %c of the text%s\n", 'a' + i, i % 4 == 3 ? "\n" : "");
    }
    source_rows_write_file(dir, "rows/train.tsv", str_text(&rows));
    source_rows_write_file(dir, "lines/train.txt", str_text(&lines));
}

/* ---- a rank ---- */

const struct agent_config *source_rows_configure(struct arena *arena, const char *root,
                                                 const char *flags)
{
    struct config *config = arena_new(arena, struct config);
    const char *line = arena_printf(arena, "--root %s %s", root, flags);
    struct error err;
    assert_ok(config_line_parse(arena, line, "", config, &err), &err);
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

int source_rows_open(const struct agent_config *config, enum model_task task, int r, int size,
                     int32_t mask, struct source_rows_rank *rank, struct error *err)
{
    assert_ok(device_open("cpu", 1, &rank->device, err), err);
    assert_ok(stream_open(rank->device, "test", &rank->stream, err), err);
    rank->model = model_of(task);
    struct batch_source_env env = {.stream = rank->stream,
                                   .rank = r,
                                   .size = size,
                                   .max_batches = 2,
                                   .encoder = texts_encoder()};
    env.encoder.adds_eos = true;
    env.encoder.pad = PAD;
    env.encoder.mask = mask;
    env.encoder.vocabulary = TEXTS_VOCABULARY;
    rank->source = NULL;
    return batch_source_open(config, SPLIT_TRAIN, &rank->model, &env, &rank->source, err);
}

void source_rows_close(struct source_rows_rank *rank)
{
    batch_source_close(rank->source);
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
        char c = ids[i] < 0                   ? '.'
                 : ids[i] == PAD              ? '_'
                 : ids[i] == SOURCE_ROWS_MASK ? '?'
                 : ids[i] == TEXTS_BOS        ? '<'
                 : ids[i] == TEXTS_EOS        ? '>'
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

void source_rows_free(struct source_rows_seen *seen)
{
    for (int64_t i = 0; i < SOURCE_ROWS_MAX; i++)
        free(seen->rows[i]);
}

/* Reads one rank's way through the rest of an epoch, at most `most` batches of it. */
static void read_rank(struct source_rows_rank *rank, int r, int size, int64_t epoch,
                      int64_t samples, int64_t most, bool padded, struct source_rows_seen *seen)
{
    struct error err;
    struct step_batches fetched;
    struct batch_source *source = rank->source;
    const char *state = samples > 0 ? batch_source_state(source) : "";
    int64_t batches = 0;
    assert_ok(batch_source_seek(source, epoch, samples, state, &err), &err);
    do {
        assert_ok(
            batch_source_next(source, most - batches < 2 ? most - batches : 2, &fetched, &err),
            &err);
        seen->targets += fetched.targets;
        seen->labels += fetched.labels;
        seen->tokens += fetched.tokens;
        for (int64_t i = 0; i < fetched.batches; i++, batches++) {
            struct batch batch = batch_source_batch(source, i);
            assert_ok(stream_sync(rank->stream, &err), &err);
            for (int64_t row = 0; row < batch.rows; row++) {
                int64_t place = (batches * source->batch_rows + row) * size + r;
                assert_true(place < SOURCE_ROWS_MAX && !seen->rows[place]);
                seen->rows[place] = show_row(&batch, row, padded);
                seen->count++;
            }
        }
    } while (fetched.batches > 0 && batches < most);
}

struct source_rows_seen source_rows_read(const struct agent_config *config, enum model_task task,
                                         int size, int64_t epoch, int64_t samples, int64_t most,
                                         bool padded)
{
    struct source_rows_seen seen = {.count = 0};
    for (int r = 0; r < size; r++) {
        struct source_rows_rank rank;
        struct error err;
        assert_ok(source_rows_open(config, task, r, size, SOURCE_ROWS_MASK, &rank, &err), &err);
        read_rank(&rank, r, size, epoch, samples, most, padded, &seen);
        source_rows_close(&rank);
    }
    return seen;
}
