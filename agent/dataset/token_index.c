#include "agent/dataset/token_index.h"

#include "agent/dataset/offset_search.h"
#include "agent/dataset/sampler.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct token_index {
    struct token_reader reader;
    struct id_documents documents;
    int64_t window; /* T */
    enum token_packing packing;
    bool shuffle;
    uint64_t seed;
    int64_t vocab_size; /* 0: any */
    int32_t pad;
    int64_t first_document; /* of the split */
    int64_t document_count;
    /* [document_count + 1] concat: ids before each document; else: windows before it */
    int64_t *before;
    int64_t first_window;
    int64_t *order;                 /* [samples] of the epoch; NULL: the identity */
    int32_t *ids, *labels;          /* [T + 1] */
    struct token_position position; /* epoch, sample, documents, tokens */
};

static struct token_index *index_of(struct token_reader *reader)
{
    return (struct token_index *)reader;
}

/* Windows of a document on its own: a window needs a second id, else it has no target. */
static int64_t windows_of(const struct token_index *x, int64_t length)
{
    if (length < 2)
        return 0;
    return x->packing == TOKENS_PER_DOCUMENT ? (length - 2) / x->window + 1 : 1;
}

static bool flows(const struct token_index *x)
{
    return x->packing == TOKENS_CONCAT && !x->documents.one_window_each;
}

static int too_long(const struct token_index *x, int64_t document, int64_t length,
                    struct error *err)
{
    int64_t number;
    const char *file = x->documents.locate(x->documents.ctx, document, &number);
    return error_set(err, ERR_INPUT,
                     "%s: %s %lld has %lld ids, a window %lld: set data.max_seq_length to %lld, or "
                     "data.packing to per_document (cut into several) or none (cut off)",
                     file, x->documents.unit, (long long)number, (long long)length,
                     (long long)x->window, (long long)length);
}

static int measure(struct token_index *x, struct error *err)
{
    x->before = xcalloc((size_t)x->document_count + 1, sizeof *x->before);
    for (int64_t i = 0; i < x->document_count; i++) {
        int64_t length = x->documents.length(x->documents.ctx, x->first_document + i);
        if (x->packing == TOKENS_CONCAT && x->documents.one_window_each && length > x->window)
            return too_long(x, x->first_document + i, length, err);
        x->before[i + 1] = x->before[i] + (flows(x) ? length : windows_of(x, length));
    }
    return 0;
}

/* Which documents and which windows of them are in the split. */
static int take_split(struct token_index *x, const struct token_split *split, const char *name,
                      struct error *err)
{
    int64_t first, end, rows = x->documents.count;
    token_split_rows(split, rows, &first, &end);
    if (x->documents.rows_are_windows) {
        first = 0;
        end = rows;
    }
    x->first_document = first;
    x->document_count = end - first;
    if (measure(x, err) < 0)
        return -1;
    int64_t total = x->before[x->document_count];
    int64_t windows = flows(x) ? (total > 0 ? (total - 1) / x->window : 0) : total;
    if (windows == 0 && flows(x) && total > 0)
        return error_set(err, ERR_NOT_FOUND,
                         "%s: %lld ids in split %s; a window of %lld needs %lld: set a smaller "
                         "data.max_seq_length, or bring more data",
                         name, (long long)total, split->name, (long long)x->window,
                         (long long)x->window + 1);
    end = windows;
    if (x->documents.rows_are_windows)
        token_split_rows(split, windows, &x->first_window, &end);
    x->reader.samples = end - x->first_window;
    if (x->reader.samples == 0)
        return error_set(
            err, ERR_NOT_FOUND,
            "%s: split %s is empty: %lld of its %lld %ss were asked for, and they have "
            "no window of two ids or more",
            name, split->name, (long long)x->document_count, (long long)rows, x->documents.unit);
    if (x->shuffle && x->reader.samples > TOKENS_MAX_WINDOWS)
        return error_set(err, ERR_LIMIT,
                         "%s: %lld windows; at most %d can be shuffled: take a part of the split, "
                         "or set data.shuffle to false",
                         name, (long long)x->reader.samples, TOKENS_MAX_WINDOWS);
    return 0;
}

/* Documents without any windows or ids are passed over. */
static int64_t find_document(const struct token_index *x, int64_t at)
{
    return offset_search(x->before, sizeof *x->before, x->document_count, at);
}

static int check_id(const struct token_index *x, int64_t document, int64_t token, int32_t id,
                    bool is_label, struct error *err)
{
    int64_t most = x->vocab_size > 0 ? x->vocab_size : INT32_MAX;
    if ((id >= 0 && id < most) || (is_label && id == TOKENS_IGNORED))
        return 0;
    int64_t number;
    const char *file = x->documents.locate(x->documents.ctx, document, &number);
    return error_set(
        err, ERR_INPUT,
        "%s: %s %lld, place %lld: %s %d is not in the vocabulary of %lld: the data was "
        "made with another tokenizer",
        file, x->documents.unit, (long long)number, (long long)token, is_label ? "label" : "id", id,
        (long long)most);
}

static int read_checked(struct token_index *x, int64_t document, int64_t first, int64_t count,
                        int64_t at, struct error *err)
{
    const struct id_documents *d = &x->documents;
    int32_t *labels = d->has_labels ? x->labels + at : NULL;
    if (d->read(d->ctx, document, first, count, x->ids + at, labels, err) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (check_id(x, document, first + i, x->ids[at + i], false, err) < 0 ||
            (labels && check_id(x, document, first + i, labels[i], true, err) < 0))
            return -1;
    }
    return 0;
}

/* Up to T + 1 ids and labels of a window; *ret_count says how many. */
static int read_window(struct token_index *x, int64_t w, int64_t *ret_count, struct error *err)
{
    /* One id more than the window: the last place's target is the first id behind it. Windows
     * overlap by that one. */
    int64_t want = x->window + 1, have = 0;
    bool whole = flows(x);
    int64_t at = whole ? w * x->window : w, i = find_document(x, at);
    int64_t first = (at - x->before[i]) * (whole ? 1 : x->window);
    for (; have < want && i < x->document_count; i++, first = 0) {
        int64_t document = x->first_document + i;
        int64_t left = x->documents.length(x->documents.ctx, document) - first;
        int64_t count = left < want - have ? left : want - have;
        if (count > 0 && read_checked(x, document, first, count, have, err) < 0)
            return -1;
        have += count;
        if (!whole)
            break;
    }
    *ret_count = have;
    return 0;
}

static int next(struct token_reader *reader, int32_t *ids, int32_t *targets, bool *ret_end,
                struct error *err)
{
    struct token_index *x = index_of(reader);
    *ret_end = x->position.sample >= reader->samples;
    if (*ret_end)
        return 0;
    if (ids) {
        int64_t i = x->position.sample, count;
        if (read_window(x, x->first_window + (x->order ? x->order[i] : i), &count, err) < 0)
            return -1;
        const int32_t *labels = x->documents.has_labels ? x->labels : x->ids;
        for (int64_t t = 0; t < x->window; t++) {
            ids[t] = t < count ? x->ids[t] : x->pad;
            targets[t] = t + 1 < count ? labels[t + 1] : TOKENS_IGNORED;
        }
    }
    x->position.sample++;
    x->position.tokens += x->window;
    return 0;
}

static int skip(struct token_reader *reader, int64_t count, int64_t *ret_skipped, struct error *err)
{
    (void)err;
    struct token_index *x = index_of(reader);
    int64_t left = reader->samples - x->position.sample;
    *ret_skipped = count < left ? count : left;
    x->position.sample += *ret_skipped;
    x->position.tokens += *ret_skipped * x->window;
    return 0;
}

static int set_epoch(struct token_reader *reader, int64_t epoch, struct error *err)
{
    (void)err;
    struct token_index *x = index_of(reader);
    if (x->shuffle && (!x->order || x->position.epoch != epoch)) {
        if (!x->order)
            x->order = xcalloc((size_t)reader->samples, sizeof *x->order);
        sampler_permute(reader->samples, x->seed, (uint64_t)epoch, x->order);
    }
    x->position.epoch = epoch;
    x->position.sample = 0;
    return 0;
}

static void tell(const struct token_reader *reader, struct token_position *ret_position)
{
    *ret_position = ((const struct token_index *)reader)->position;
}

static int seek(struct token_reader *reader, const struct token_position *position,
                struct error *err)
{
    struct token_index *x = index_of(reader);
    if (position->sample > reader->samples)
        return error_set(err, ERR_INPUT, "the position is sample %lld of an epoch of %lld",
                         (long long)position->sample, (long long)reader->samples);
    set_epoch(reader, position->epoch, err);
    x->position = *position;
    return 0;
}

static void bad_lines(struct token_reader *reader, struct token_bad_lines *ret_lines)
{
    (void)reader;
    *ret_lines = (struct token_bad_lines){0};
}

static void activity(struct token_reader *reader, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "copying ids of %s", index_of(reader)->documents.unit);
}

static void close_index(struct token_reader *reader)
{
    struct token_index *x = index_of(reader);
    x->documents.close(x->documents.ctx);
    free(x->before);
    free(x->order);
    free(x->ids);
    free(x->labels);
    free(x);
}

int token_index_open(const struct id_documents *documents, const struct token_options *options,
                     const struct token_split *split, const char *name, int32_t pad,
                     struct token_reader **ret_reader, struct error *err)
{
    struct token_index *x = xcalloc(1, sizeof *x);
    size_t room = (size_t)options->window + 1;
    *x = (struct token_index){
        .reader = {.set_epoch = set_epoch,
                   .next = next,
                   .skip = skip,
                   .tell = tell,
                   .seek = seek,
                   .bad_lines = bad_lines,
                   .activity = activity,
                   .close = close_index},
        .documents = *documents,
        .window = options->window,
        .packing = options->source.packing,
        .shuffle = options->shuffle,
        .seed = options->seed,
        .vocab_size = options->vocab_size,
        .pad = pad,
        .ids = xcalloc(room, sizeof *x->ids),
        .labels = documents->has_labels ? xcalloc(room, sizeof *x->labels) : NULL,
    };
    int result = 0;
    if (documents->rows_are_windows && options->source.packing != TOKENS_CONCAT)
        result = error_set(err, ERR_CONFIG,
                           "%s: a file of ids does not say where its documents begin: data.packing "
                           "must be concat",
                           name);
    if (result == 0)
        result = take_split(x, split, name, err);
    if (result < 0) {
        close_index(&x->reader);
        return -1;
    }
    set_epoch(&x->reader, 0, err);
    *ret_reader = &x->reader;
    return 0;
}
