#include "agent/dataset/examples.h"

#include "agent/dataset/example_encoder.h"
#include "agent/dataset/text_file.h"
#include "agent/dataset/token_files.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The work of opening. */
struct build {
    const struct examples_options *options;
    struct arena *arena; /* of paths */
    struct token_files files;
    struct token_split split;
    struct example_encoder encoder;
    struct encode_ring *ring; /* NULL: rows are only counted */
    int64_t row, first, end;  /* rows before first, and from end on, are passed over */
    struct examples *examples;
    size_t item_capacity, id_capacity;
    struct tokens stream; /* MASKED, CONCAT: what is not yet a sample */
    int32_t documents;
};

/* ---- samples ---- */

static int add_item(struct build *b, const int32_t *ids, size_t first, size_t second, int32_t label,
                    struct error *err)
{
    struct examples *x = b->examples;
    size_t count = first + second;
    if (x->id_count + (int64_t)count > EXAMPLES_MAX_IDS)
        return error_set(err, ERR_LIMIT,
                         "%s: more than %d tokens, which are all kept in memory: take fewer rows "
                         "(train_size, train[:N])",
                         x->name, EXAMPLES_MAX_IDS);
    if ((size_t)x->item_count == b->item_capacity) {
        b->item_capacity = b->item_capacity ? 2 * b->item_capacity : 1024;
        x->items = xrealloc(x->items, b->item_capacity * sizeof *x->items);
    }
    if ((size_t)x->id_count + count > b->id_capacity) {
        b->id_capacity = 2 * b->id_capacity + count + 4096;
        x->ids = xrealloc(x->ids, b->id_capacity * sizeof *x->ids);
    }
    x->items[x->item_count++] = (struct example){
        .begin = x->id_count, .counts = {(int32_t)first, (int32_t)second}, .label = label};
    memcpy(x->ids + x->id_count, ids, count * sizeof *ids);
    x->id_count += (int64_t)count;
    return 0;
}

/* Documents end to end, cut into samples. */
static int add_to_stream(struct build *b, const int32_t *ids, size_t count, struct error *err)
{
    size_t window = (size_t)b->options->max_tokens, done = 0;
    tokens_add_many(&b->stream, ids, count);
    for (; b->stream.count - done >= window; done += window)
        if (add_item(b, b->stream.ids + done, window, 0, 0, err) < 0)
            return -1;
    if (done > 0)
        memmove(b->stream.ids, b->stream.ids + done, (b->stream.count - done) * sizeof *ids);
    b->stream.count -= done;
    return 0;
}

/* A document within bos and eos, cut into parts within bos and eos. */
static int add_cut(struct build *b, const int32_t *ids, size_t count, struct error *err)
{
    size_t room = (size_t)b->options->max_tokens - 2;
    auto_tokens struct tokens sample = {0};
    for (size_t at = 1; at + 1 < count; at += room) {
        size_t length = count - 1 - at < room ? count - 1 - at : room;
        tokens_clear(&sample);
        tokens_add(&sample, ids[0]);
        tokens_add_many(&sample, ids + at, length);
        tokens_add(&sample, ids[count - 1]);
        if (add_item(b, sample.ids, sample.count, 0, 0, err) < 0)
            return -1;
    }
    return 0;
}

static int add_sentences(struct build *b, const int32_t *ids, size_t count, struct error *err)
{
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] != EXAMPLE_SENTENCE_END)
            continue;
        if (add_item(b, ids + begin, i - begin, 0, b->documents, err) < 0)
            return -1;
        begin = i + 1;
    }
    b->documents++;
    return 0;
}

static int add_record(struct build *b, const struct tokens *record, struct error *err)
{
    const struct examples_options *o = b->options;
    const int32_t *ids = record->ids + EXAMPLE_HEAD;
    size_t first = (size_t)record->ids[EXAMPLE_FIRST], second = (size_t)record->ids[EXAMPLE_SECOND];
    assert(first + second + EXAMPLE_HEAD == record->count);
    if (o->kind == EXAMPLES_PRETRAINING)
        return add_sentences(b, ids, first, err);
    if (o->kind == EXAMPLES_MASKED && o->data.source.packing == TOKENS_CONCAT)
        return add_to_stream(b, ids, first, err);
    if (o->kind == EXAMPLES_MASKED && o->data.source.packing == TOKENS_PER_DOCUMENT)
        return add_cut(b, ids, first, err);
    return add_item(b, ids, first, second, record->ids[EXAMPLE_LABEL], err);
}

/* ---- rows ---- */

/* Takes the oldest row out of the ring; there is one. */
static int take_oldest(struct build *b, struct error *err)
{
    struct encode_job *job = encode_ring_oldest(b->ring);
    encode_ring_wait(b->ring);
    int result = 0;
    if (job->failed) {
        *err = job->err;
        result = -1;
    } else {
        result = add_record(b, &job->ids, err);
    }
    encode_ring_release(b->ring);
    return result;
}

static int drain(struct build *b, struct error *err)
{
    while (b->ring && encode_ring_oldest(b->ring))
        if (take_oldest(b, err) < 0)
            return -1;
    return 0;
}

static int take_row(struct build *b, const char *path, int64_t line, const char *text, size_t bytes,
                    struct error *err)
{
    int64_t row = b->row++;
    if (!b->ring || row < b->first || row >= b->end)
        return 0;
    struct encode_job *job;
    while (!(job = encode_ring_free(b->ring)))
        if (take_oldest(b, err) < 0)
            return -1;
    encode_job_set_text(job, text, bytes);
    job->path = path;
    job->line = line;
    encode_ring_submit(b->ring);
    return 0;
}

/* ---- files: lines to records ---- */

/* A record of several lines: of CSV with an open quote, or a paragraph. */
struct record {
    struct str text;
    int64_t line; /* its first; 0: there is none */
    bool open;    /* CSV: a quote is */
};

static int end_record(struct build *b, const char *path, struct record *record, bool *is_names,
                      struct error *err)
{
    const char *text = str_text(&record->text);
    int result = 0;
    if (record->line == 0)
        return 0;
    if (record->text.truncated)
        result = error_set(err, ERR_INPUT, "%s:%lld: a row longer than %zu bytes%s", path,
                           (long long)record->line, record->text.cap,
                           b->files.format == TOKENS_CSV ? ": is a quote left open?" : "");
    else if (*is_names && columns_read_names(&b->encoder.columns, text, record->text.length, err))
        result = error_wrap(err, "%s:%lld", path, (long long)record->line);
    else if (!*is_names)
        result = take_row(b, path, record->line, text, record->text.length, err);
    *is_names = false;
    record->line = 0;
    record->open = false;
    str_clear(&record->text);
    record->text.truncated = false;
    return result;
}

/* Nothing is on it. Between tabs lie fields, which may be empty: it is a row then. */
static bool is_blank(const struct text_line *line, enum token_format format)
{
    bool has_fields = format == TOKENS_TSV && memchr(line->text, '\t', line->bytes);
    return text_line_is_blank(line) && !has_fields;
}

/* Adds the line to the record, and ends that where the line does so. */
static int take_line(struct build *b, const char *path, const struct text_line *line,
                     struct record *record, bool *is_names, struct error *err)
{
    enum token_format format = b->files.format;
    bool paragraphs = format == TOKENS_TEXT && b->options->kind == EXAMPLES_PRETRAINING;
    if (line->too_long)
        return error_set(err, ERR_INPUT, "%s:%lld: longer than %d bytes", path,
                         (long long)line->number, TEXT_FILE_MAX_LINE_BYTES);
    bool within = record->line > 0;
    if (is_blank(line, format) && !(within && format == TOKENS_CSV))
        return end_record(b, path, record, is_names, err);
    if (within)
        str_add(&record->text, "\n");
    else
        record->line = line->number;
    str_add_bytes(&record->text, line->text, line->bytes);
    if (format == TOKENS_CSV)
        record->open = columns_is_open(line->text, line->bytes, record->open);
    return (paragraphs || record->open) && !record->text.truncated
               ? 0
               : end_record(b, path, record, is_names, err);
}

static int read_lines(struct build *b, const char *path, struct text_file *file, struct error *err)
{
    struct record record = {.line = 0};
    struct text_line line;
    bool end = false;
    bool is_names = b->files.format == TOKENS_TSV || b->files.format == TOKENS_CSV;
    int result = 0;
    str_init(&record.text, TEXT_FILE_MAX_LINE_BYTES);
    while (result == 0 && b->row < b->end &&
           (result = text_file_next(file, &line, &end, err)) == 0 && !end)
        result = take_line(b, path, &line, &record, &is_names, err);
    if (result == 0 && end && record.open)
        result = error_set(err, ERR_INPUT, "%s:%lld: a quote is left open", path,
                           (long long)record.line);
    if (result == 0 && end)
        result = end_record(b, path, &record, &is_names, err);
    str_free(&record.text);
    return result;
}

/* The names of columns are each file's own: its rows are done before the next one begins. */
static int read_files(struct build *b, struct error *err)
{
    b->row = 0;
    for (int i = 0; i < b->files.count && b->row < b->end; i++) {
        struct text_file *file;
        if (text_file_open(b->files.paths[i], 0, 0, &file, err) < 0)
            return -1;
        int result = read_lines(b, b->files.paths[i], file, err);
        text_file_close(file);
        if (result < 0 || drain(b, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- opening ---- */

static int find_rows(struct build *b, struct error *err)
{
    int64_t rows = INT64_MAX;
    b->end = INT64_MAX;
    if (token_split_needs_count(&b->split)) {
        if (read_files(b, err) < 0)
            return -1;
        rows = b->row;
    }
    token_split_rows(&b->split, rows, &b->first, &b->end);
    return 0;
}

/* A sentence is a sample if the next one is of the same document. */
static void find_firsts(struct examples *x)
{
    x->firsts = xmalloc(((size_t)x->item_count + 1) * sizeof *x->firsts);
    for (int64_t i = 0; i + 1 < x->item_count; i++)
        if (x->items[i].label == x->items[i + 1].label)
            x->firsts[x->count++] = i;
}

static int finish(struct build *b, struct error *err)
{
    struct examples *x = b->examples;
    const struct examples_options *o = b->options;
    x->count = x->item_count;
    if (o->kind == EXAMPLES_PRETRAINING) {
        x->count = 0;
        find_firsts(x);
    }
    x->fingerprint = XXH64(x->ids, (size_t)x->id_count * sizeof *x->ids, (uint64_t)x->count);
    for (int64_t i = 0; i < x->item_count; i++) { /* not the struct's padding */
        const struct example *item = &x->items[i];
        const int32_t numbers[] = {item->counts[0], item->counts[1], item->label};
        x->fingerprint = XXH64(numbers, sizeof numbers, x->fingerprint);
    }
    if (x->count > 0)
        return 0;
    if (b->stream.count > 0)
        return error_set(err, ERR_INPUT,
                         "%s: only %zu tokens in all, fewer than the %lld of one sample: set "
                         "data.max_seq_length, or data.packing=none",
                         x->name, b->stream.count, (long long)o->max_tokens);
    return error_set(err, ERR_INPUT, "%s: no %s in %s", x->name,
                     o->kind == EXAMPLES_PRETRAINING ? "sentence that has a next one" : "row",
                     o->data.split);
}

static int build(struct build *b, struct error *err)
{
    const struct examples_options *o = b->options;
    if (token_split_parse(o->data.split, o->data.max_rows, &b->split, err) < 0 ||
        token_files_find(&o->data.source, &b->split, b->arena, &b->files, err) < 0)
        return -1;
    const char *first = b->files.paths[0];
    b->examples->name = b->files.count == 1
                            ? xstrdup(first)
                            : xasprintf("%s and %d more", first, b->files.count - 1);
    b->examples->format = token_format_name(b->files.format);
    if (example_encoder_init(&b->encoder, o, b->files.format, b->examples->name, err) < 0 ||
        find_rows(b, err) < 0 ||
        encode_ring_open(o->data.threads, example_encode, &b->encoder, &b->ring, err) < 0 ||
        read_files(b, err) < 0)
        return -1;
    return finish(b, err);
}

int examples_open(const struct examples_options *options, struct examples **ret_examples,
                  struct error *err)
{
    assert(options->max_tokens >= 4 || options->kind == EXAMPLES_TRANSLATION);
    struct build b = {.options = options, .arena = arena_open()};
    b.examples = xcalloc(1, sizeof *b.examples);
    int result = build(&b, err);
    encode_ring_close(b.ring);
    example_encoder_free(&b.encoder);
    tokens_free(&b.stream);
    arena_close(b.arena);
    if (result < 0) {
        examples_close(b.examples);
        return -1;
    }
    *ret_examples = b.examples;
    return 0;
}

void examples_close(struct examples *examples)
{
    if (!examples)
        return;
    free(examples->items);
    free(examples->firsts);
    free(examples->ids);
    free(examples->name);
    free(examples);
}

void examples_cut_pair(int64_t room, int64_t *first, int64_t *second)
{
    int64_t *shorter = *first > *second ? second : first;
    int64_t *longer = *first > *second ? first : second;
    if (*shorter + *longer <= room)
        return;
    *longer = room - *shorter;
    if (*longer >= *shorter)
        return;
    *shorter = room / 2;
    *longer = room - *shorter;
}
