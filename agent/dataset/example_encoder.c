#include "agent/dataset/example_encoder.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static void want(struct columns *columns, const char *column, const char *key, bool may_be_number)
{
    columns->wanted[columns->count++] =
        (struct json_line_text){.column = column, .key = key, .may_be_number = may_be_number};
}

static void want_columns(struct columns *columns, const struct examples_options *o)
{
    want(columns, o->data.source.text_column, "data.text_column", false);
    if (o->kind == EXAMPLES_TRANSLATION)
        want(columns, o->data.source.target_column, "data.target_column", false);
    if (o->kind != EXAMPLES_CLASSES)
        return;
    want(columns, o->data.source.label_column, "data.label_column", true);
    if (o->data.source.text_pair_column[0])
        want(columns, o->data.source.text_pair_column, "data.text_pair_column", false);
}

static int check_format(const struct examples_options *o, enum token_format format,
                        const char *name, struct error *err)
{
    bool one_column = o->kind == EXAMPLES_MASKED || o->kind == EXAMPLES_PRETRAINING;
    bool ids = format == TOKENS_LLMC || format == TOKENS_MEGATRON;
    if (format == TOKENS_JSONL || format == TOKENS_TSV || format == TOKENS_CSV ||
        (format == TOKENS_TEXT && one_column))
        return 0;
    if (ids)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: %s has ids, but the model learns rows of text: give JSON lines, TSV "
                         "or CSV%s",
                         name, token_format_name(format), one_column ? ", or lines of text" : "");
    return error_set(err, ERR_UNSUPPORTED,
                     "%s: %s has no columns of text: give JSON lines, TSV or CSV%s", name,
                     token_format_name(format), one_column ? ", or lines of text" : "");
}

static int read_label_names(struct example_encoder *e, struct error *err)
{
    const struct examples_options *o = e->options;
    const char *names = o->data.source.label_names[0] ? o->data.source.label_names : o->model_names;
    if (!names)
        return 0;
    auto_free char *list = xstrdup(names);
    char *rest = list;
    size_t most = 1;
    for (const char *c = names; *c; c++)
        most += *c == ',';
    e->label_names = xcalloc(most, sizeof *e->label_names);
    for (char *name; (name = strsep(&rest, ","));)
        e->label_names[e->label_count++] = xstrdup(name);
    if ((int64_t)e->label_count == o->classes || !o->data.source.label_names[0])
        return 0;
    return error_set(err, ERR_CONFIG, "data.label_names: %zu names, but the model has %lld classes",
                     e->label_count, (long long)o->classes);
}

/* BERT's samples always have both; else as the tokenizer says, if nothing else is asked for. */
static bool adds(const struct examples_options *o, enum token_affix asked, bool tokenizers)
{
    if (o->kind != EXAMPLES_TRANSLATION)
        return true;
    return asked == TOKENS_AFFIX_AUTO ? tokenizers : asked == TOKENS_AFFIX_TRUE;
}

/* Beside bos and eos there must be something to read and to learn. */
static int check_room(const struct example_encoder *e, struct error *err)
{
    const struct examples_options *o = e->options;
    int64_t least = e->add_bos + e->add_eos + 1;
    if (o->max_source >= least && o->max_target >= least)
        return 0;
    bool is_source = o->max_source < least;
    return error_set(
        err, ERR_CONFIG,
        "data.max_%s_length: %lld leaves no room for a text, whose %s: at least %lld",
        is_source ? "source" : "target", (long long)(is_source ? o->max_source : o->max_target),
        e->add_bos && e->add_eos ? "bos and eos count, too" : "eos counts, too", (long long)least);
}

int example_encoder_init(struct example_encoder *encoder, const struct examples_options *options,
                         enum token_format format, const char *name, struct error *err)
{
    const struct examples_options *o = options;
    const struct token_encoder *t = &o->data.encoder;
    *encoder = (struct example_encoder){.options = o, .columns = {.format = format}};
    if (check_format(o, format, name, err) < 0)
        return -1;
    if (!t->encode)
        return error_set(err, ERR_CONFIG, "%s is %s: set data.tokenizer", name,
                         token_format_name(format));
    encoder->add_bos = adds(o, o->data.source.add_bos, t->adds_bos);
    encoder->add_eos = adds(o, o->data.source.add_eos, t->adds_eos);
    if ((encoder->add_bos && t->bos < 0) || (encoder->add_eos && t->eos < 0))
        return error_set(err, ERR_CONFIG, "data.tokenizer: it has no %s, which %s needs",
                         encoder->add_bos && t->bos < 0 ? "bos ([CLS])" : "eos ([SEP])",
                         o->kind == EXAMPLES_TRANSLATION ? "data.add_bos or data.add_eos"
                                                         : "the model");
    if (o->kind == EXAMPLES_TRANSLATION && check_room(encoder, err) < 0)
        return -1;
    want_columns(&encoder->columns, o);
    return o->kind == EXAMPLES_CLASSES ? read_label_names(encoder, err) : 0;
}

void example_encoder_free(struct example_encoder *encoder)
{
    for (size_t i = 0; i < encoder->label_count; i++)
        free(encoder->label_names[i]);
    free(encoder->label_names);
    *encoder = (struct example_encoder){0};
}

/* ---- texts ---- */

/* Where a word ends, at or behind `from`. */
static size_t word_end(const char *text, size_t bytes, size_t from)
{
    while (from < bytes && text[from] != ' ' && text[from] != '\n')
        from++;
    return from;
}

/* Adds the ids of the text, or at least the first `most` + 1 of them: no token goes across words,
 * so a long text is only read as far as is needed. */
static int encode_beginning(const struct example_encoder *e, const char *text, size_t bytes,
                            size_t most, struct tokens *ids, struct error *err)
{
    enum { BYTES_PER_ID = 8, MARGIN = 8 };
    const struct token_encoder *t = &e->options->data.encoder;
    size_t before = ids->count;
    for (size_t prefix = BYTES_PER_ID * (most + MARGIN);; prefix *= 4) {
        size_t end = prefix < bytes ? word_end(text, bytes, prefix) : bytes;
        ids->count = before;
        if (t->encode(t->ctx, text, end, ids, err) < 0)
            return -1;
        /* The margin keeps the ids that are taken from those next to the cut, which depend on
         * it. */
        if (end == bytes || ids->count - before > most + MARGIN)
            return 0;
    }
}

/* Adds bos, the text's ids, eos: at most `most`, what is beyond is cut off. */
static int encode_within(const struct example_encoder *e, const char *text, size_t bytes,
                         int64_t most, struct tokens *ids, struct error *err)
{
    const struct token_encoder *t = &e->options->data.encoder;
    size_t room = (size_t)(most > e->add_bos + e->add_eos ? most - e->add_bos - e->add_eos : 0);
    if (e->add_bos)
        tokens_add(ids, t->bos);
    size_t before = ids->count;
    if (encode_beginning(e, text, bytes, room, ids, err) < 0)
        return -1;
    if (ids->count - before > room)
        ids->count = before + room;
    if (e->add_eos)
        tokens_add(ids, t->eos);
    return 0;
}

static void set_head(struct tokens *record, size_t first, size_t second, int32_t label)
{
    record->ids[EXAMPLE_FIRST] = (int32_t)first;
    record->ids[EXAMPLE_SECOND] = (int32_t)second;
    record->ids[EXAMPLE_LABEL] = label;
}

/* A row that has nothing to read or to learn is a mistake of the data's; an empty text may have a
 * class, though. */
static int is_empty(const struct json_line_text *text, const char *why, struct error *err)
{
    return error_set(err, ERR_INPUT, "its \"%s\" is empty: nothing is to be %s; take such rows out",
                     text->column, why);
}

/* ---- sequence to sequence ---- */

static int encode_translation(const struct example_encoder *e, const struct columns_row *row,
                              struct tokens *record, struct error *err)
{
    const struct examples_options *o = e->options;
    const struct json_line_text *text = &row->texts[0], *target = &row->texts[1];
    auto_str struct str source;
    str_init(&source, SIZE_MAX / 2);
    str_add(&source, o->data.source.source_prefix);
    str_add_bytes(&source, text->text, text->bytes);
    if (encode_within(e, str_text(&source), source.length, o->max_source, record, err) < 0)
        return -1;
    if (text->bytes == 0)
        return is_empty(text, "read", err);
    size_t first = record->count - EXAMPLE_HEAD, before = record->count;
    if (encode_within(e, target->text, target->bytes, o->max_target, record, err) < 0)
        return -1;
    if (record->count - before <= (size_t)e->add_bos + e->add_eos)
        return is_empty(target, "learned", err);
    set_head(record, first, record->count - before, 0);
    return 0;
}

/* ---- classes ---- */

static int find_label(const struct example_encoder *e, const struct json_line_text *text,
                      int32_t *ret_label, struct error *err)
{
    auto_free char *label = xasprintf("%.*s", (int)text->bytes, text->text);
    bool named = e->options->data.source.label_names[0];
    int64_t number = -1;
    /* Without names of the user's a number is a class, whatever the model calls its own. */
    bool is_number = !named && str_to_i64(label, INT64_MIN, INT64_MAX, &number);
    for (size_t i = 0; i < e->label_count && !is_number && number < 0; i++)
        if (strcmp(e->label_names[i], label) == 0)
            number = (int64_t)i;
    if (number < 0 && named)
        return error_set(err, ERR_INPUT, "its \"%s\" is \"%.40s\", which data.label_names has not",
                         text->column, label);
    if (number < 0 || number >= e->options->classes)
        return error_set(err, ERR_INPUT,
                         "its \"%s\" is \"%.40s\", not a class from 0 to %lld: give names in "
                         "data.label_names, or the model more classes (num_labels)",
                         text->column, label, (long long)e->options->classes - 1);
    *ret_label = (int32_t)number;
    return 0;
}

static int too_long(const struct examples_options *o, struct error *err)
{
    return error_set(err, ERR_INPUT,
                     "more than the %lld tokens that the model has positions for: "
                     "data.max_seq_length=%lld cuts longer rows off",
                     (long long)o->max_tokens, (long long)o->max_tokens);
}

static int encode_classes(const struct example_encoder *e, const struct columns_row *row,
                          struct tokens *record, struct error *err)
{
    const struct examples_options *o = e->options;
    const struct token_encoder *t = &o->data.encoder;
    const struct json_line_text *text = &row->texts[0], *pair = &row->texts[2];
    bool paired = e->columns.count > 2;
    auto_tokens struct tokens one = {0}, two = {0};
    size_t most = (size_t)o->max_tokens;
    int64_t room = o->max_tokens - (paired ? 3 : 2);
    int32_t label = 0;
    if (find_label(e, &row->texts[1], &label, err) < 0 ||
        encode_beginning(e, text->text, text->bytes, most, &one, err) < 0 ||
        (paired && encode_beginning(e, pair->text, pair->bytes, most, &two, err) < 0))
        return -1;
    int64_t first = (int64_t)one.count, second = (int64_t)two.count;
    if (first + second > room && !o->may_cut)
        return too_long(o, err);
    examples_cut_pair(room, &first, &second);
    tokens_add(record, t->bos);
    tokens_add_many(record, one.ids, (size_t)first);
    tokens_add(record, t->eos);
    tokens_add_many(record, two.ids, (size_t)second);
    if (paired)
        tokens_add(record, t->eos);
    set_head(record, (size_t)first + 2, paired ? (size_t)second + 1 : 0, label);
    return 0;
}

/* ---- documents ---- */

static int encode_document(const struct example_encoder *e, const struct columns_row *row,
                           struct tokens *record, struct error *err)
{
    const struct examples_options *o = e->options;
    const struct token_encoder *t = &o->data.encoder;
    const struct json_line_text *text = &row->texts[0];
    bool whole = o->data.source.packing != TOKENS_NONE || !o->may_cut;
    int result = 0;
    if (!whole) {
        result = encode_within(e, text->text, text->bytes, o->max_tokens, record, err);
    } else {
        tokens_add(record, t->bos);
        result = t->encode(t->ctx, text->text, text->bytes, record, err);
        tokens_add(record, t->eos);
    }
    size_t count = record->count - EXAMPLE_HEAD;
    if (result == 0 && o->data.source.packing == TOKENS_NONE && (int64_t)count > o->max_tokens)
        result = too_long(o, err);
    if (result == 0 && count > INT32_MAX)
        result = error_set(err, ERR_INPUT, "a document of %zu tokens: give it in parts", count);
    if (result == 0)
        set_head(record, count, 0, 0);
    return result;
}

/* Of a sentence as many ids as a sample can have beside bos, two eos and one id of the other. */
static int encode_sentences(const struct example_encoder *e, const struct columns_row *row,
                            struct tokens *record, struct error *err)
{
    const struct json_line_text *text = &row->texts[0];
    const char *at = text->text, *end = text->text + text->bytes;
    size_t most = (size_t)e->options->max_tokens - 4;
    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((lf ? lf : end) - at), before = record->count;
        if (encode_beginning(e, at, bytes, most, record, err) < 0)
            return -1;
        if (record->count - before > most && most > 0)
            record->count = before + most;
        if (record->count > before)
            tokens_add(record, EXAMPLE_SENTENCE_END);
        at += bytes + 1;
    }
    set_head(record, record->count - EXAMPLE_HEAD, 0, 0);
    return 0;
}

/* ---- any row ---- */

static int check_vocabulary(const struct example_encoder *e, const struct tokens *record,
                            struct error *err)
{
    int64_t most = e->options->data.vocab_size;
    for (size_t i = EXAMPLE_HEAD; i < record->count; i++)
        if (record->ids[i] >= most)
            return error_set(err, ERR_INPUT,
                             "the tokenizer gives id %d, the model's vocabulary has %lld: take the "
                             "model's own tokenizer",
                             record->ids[i], (long long)most);
    return 0;
}

static int encode_row(const struct example_encoder *e, struct encode_job *job,
                      struct columns_row *row)
{
    static int (*const kinds[])(const struct example_encoder *, const struct columns_row *,
                                struct tokens *, struct error *) = {
        [EXAMPLES_TRANSLATION] = encode_translation,
        [EXAMPLES_CLASSES] = encode_classes,
        [EXAMPLES_MASKED] = encode_document,
        [EXAMPLES_PRETRAINING] = encode_sentences,
    };
    tokens_add_many(&job->ids, (const int32_t[EXAMPLE_HEAD]){0}, EXAMPLE_HEAD);
    if (columns_parse(&e->columns, job->text, job->bytes, row, &job->err) < 0 ||
        kinds[e->options->kind](e, row, &job->ids, &job->err) < 0)
        return -1;
    return check_vocabulary(e, &job->ids, &job->err);
}

void example_encode(void *ctx, struct encode_job *job)
{
    struct columns_row row = {0};
    if (encode_row(ctx, job, &row) < 0) {
        job->failed = true;
        error_wrap(&job->err, "%s:%lld", job->path, (long long)job->line);
    }
    columns_row_free(&row);
}
