#include "agent/text/spec.h"

#include "agent/text/vocab.h"
#include "base/mem.h"

#include <string.h>

/* A line's pieces are what is left without the white space behind them. */
static size_t trim(const char *text, size_t bytes)
{
    while (bytes > 0 && strchr(" \t\r\v\f", text[bytes - 1]))
        bytes--;
    return bytes;
}

static int read_pieces(struct arena *arena, const char *name, const char *text, size_t bytes,
                       struct spec *spec, struct error *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    if (lines > VOCAB_MAX_IDS)
        return error_set(err, ERR_INPUT, "%s: %zu lines; at most %d", name, lines, VOCAB_MAX_IDS);
    spec->pieces = arena_array(arena, struct spec_piece, lines);
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((lf ? lf : end) - at);
        if (memchr(at, 0, length))
            return error_set(err, ERR_INPUT, "%s:%zu: a zero byte: this is no list of pieces", name,
                             spec->piece_count + 1);
        /* A line's number is the piece's id, so empty lines count as well. */
        spec->pieces[spec->piece_count] = (struct spec_piece){
            .text = arena_strndup(arena, at, trim(at, length)), .id = (int32_t)spec->piece_count};
        spec->piece_count++;
        at += length + (lf != NULL);
    }
    return 0;
}

static int32_t find(const struct spec *spec, const char *text)
{
    for (size_t i = 0; i < spec->piece_count; i++)
        if (strcmp(spec->pieces[i].text, text) == 0)
            return spec->pieces[i].id;
    return -1;
}

/* Adds a special token; -1 if it is not among the pieces. */
static int32_t add_special(struct spec *spec, const char *name)
{
    int32_t id = find(spec, name);
    if (id >= 0)
        spec->added[spec->added_count++] = (struct spec_added){
            .where = "special tokens", .content = name, .id = id, .special = true};
    return id;
}

int spec_read_bert(struct arena *arena, const char *name, const char *text, size_t bytes,
                   const struct spec_bert *how, struct spec *ret_spec, struct error *err)
{
    struct spec spec = {
        .model = "WordPiece",
        .unk_token = how->unk ? how->unk : "[UNK]",
        .unk_id = -1,
        .max_input_chars_per_word = SPEC_WORD_CHARACTERS,
        .normalizer = {.where = "normalizer",
                       .type = "BertNormalizer",
                       .clean_text = true,
                       .handle_chinese_chars = how->handle_chinese_chars,
                       .lowercase = how->lowercase,
                       .strip_accents = how->strip_accents},
        .pre_tokenizer = {.where = "pre_tokenizer", .type = "BertPreTokenizer"},
        .decoder = {.where = "decoder", .type = "WordPiece", .cleanup = true},
    };
    const char *cls = how->cls ? how->cls : "[CLS]", *sep = how->sep ? how->sep : "[SEP]";
    enum { SPECIALS = 5 };
    if (read_pieces(arena, name, text, bytes, &spec, err) < 0)
        return -1;
    spec.added = arena_array(arena, struct spec_added, SPECIALS);
    int32_t first = add_special(&spec, cls), last = add_special(&spec, sep);
    if (first < 0 || last < 0)
        return error_set(err, ERR_INPUT, "%s: there is no line %s: this is no vocabulary of BERT's",
                         name, first < 0 ? cls : sep);
    add_special(&spec, spec.unk_token);
    add_special(&spec, how->pad ? how->pad : "[PAD]");
    add_special(&spec, how->mask ? how->mask : "[MASK]");
    spec.post_processor =
        (struct spec_component){.where = "post_processor", .type = "TemplateProcessing"};
    spec.post_processor.around = arena_new(arena, struct spec_template);
    *spec.post_processor.around = (struct spec_template){
        .before = {first}, .after = {last}, .before_count = 1, .after_count = 1};
    *ret_spec = spec;
    return 0;
}
