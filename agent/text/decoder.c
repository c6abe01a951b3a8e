/* Each step turns a list of texts into another one. The texts of a step lie behind one another in
 * one buffer. */
#include "agent/text/decoder.h"

#include "agent/text/byte_alphabet.h"
#include "agent/text/pattern.h"
#include "agent/text/spec.h"
#include "agent/text/utf8.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

static int open_pattern(const struct spec_component *component, struct decoder_step *step,
                        struct error *err)
{
    step->content = component->content;
    if (!component->content)
        return error_set(err, ERR_INPUT, "%s.content: must be there", component->where);
    if (step->kind == DECODER_STRIP) {
        step->start = component->start;
        step->stop = component->stop;
        return *component->content
                   ? 0
                   : error_set(err, ERR_INPUT, "%s.content: must not be empty", component->where);
    }
    return pattern_open_component(component, &step->pattern, err);
}

static int open_step(const struct spec_component *component, struct decoder_step *step,
                     struct error *err)
{
    static const struct {
        const char *type;
        enum decoder_kind kind;
    } kinds[] = {
        {"ByteLevel", DECODER_BYTE_LEVEL}, {"ByteFallback", DECODER_BYTE_FALLBACK},
        {"Replace", DECODER_REPLACE},      {"Metaspace", DECODER_METASPACE},
        {"Strip", DECODER_STRIP},          {"Fuse", DECODER_FUSE},
        {"WordPiece", DECODER_WORDPIECE},
    };
    size_t kind = 0;
    while (kind < array_length(kinds) && strcmp(kinds[kind].type, component->type) != 0)
        kind++;
    if (kind == array_length(kinds))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s.type: %.40s is not supported; there are ByteLevel, ByteFallback, "
                         "Replace, Metaspace, Strip, Fuse, WordPiece, Sequence",
                         component->where, component->type);
    step->kind = kinds[kind].kind;
    if (step->kind == DECODER_REPLACE || step->kind == DECODER_STRIP)
        return open_pattern(component, step, err);
    if (step->kind == DECODER_WORDPIECE) {
        step->content = component->prefix ? component->prefix : "##";
        step->cleanup = component->cleanup;
    }
    if (step->kind == DECODER_METASPACE) {
        step->content = component->replacement;
        step->keep_first =
            component->prepend_scheme && strcmp(component->prepend_scheme, "never") == 0;
        if (!component->replacement || !*component->replacement)
            return error_set(err, ERR_INPUT, "%s.replacement: must be there", component->where);
    }
    return 0;
}

int decoder_open(const struct spec_component *component, struct decoder *decoder, struct error *err)
{
    decoder->absent = !component->type;
    if (!component->type)
        return 0;
    if (strcmp(component->type, "Sequence") == 0) {
        for (size_t i = 0; i < component->components.count; i++)
            if (decoder_open(&component->components.items[i], decoder, err) < 0)
                return -1;
        return 0;
    }
    if (decoder->count == DECODER_MAX_STEPS)
        return error_set(err, ERR_INPUT, "%s: more than %d decoders", component->where,
                         DECODER_MAX_STEPS);
    return open_step(component, &decoder->steps[decoder->count++], err);
}

void decoder_close(struct decoder *decoder)
{
    for (int i = 0; i < decoder->count; i++)
        pattern_close(decoder->steps[i].pattern);
    *decoder = (struct decoder){0};
}

/* ---- running ---- */

/* Texts one behind the other: text i ends at ends[i]. */
struct texts {
    struct str all;
    size_t *ends;
    size_t count;
};

static void texts_init(struct texts *texts, size_t most)
{
    *texts = (struct texts){.ends = xmalloc(most * sizeof *texts->ends)};
    str_init(&texts->all, DECODER_MAX_BYTES);
}

static void texts_free(struct texts *texts)
{
    str_free(&texts->all);
    free(texts->ends);
}

static void end_text(struct texts *texts)
{
    texts->ends[texts->count++] = texts->all.length;
}

static bool is_byte_piece(const struct decoder_piece *piece, char *ret_byte)
{
    char digits[3] = "", *end;
    if (piece->bytes != 6 || memcmp(piece->text, "<0x", 3) != 0 || piece->text[5] != '>')
        return false;
    memcpy(digits, piece->text + 3, 2);
    *ret_byte = (char)strtoul(digits, &end, 16);
    /* strtoul() takes a sign or a blank in the place of a digit. */
    return !*end && strspn(digits, "+- ") == 0;
}

/* A text that is not well-formed has bytes of a part of a character: no pattern is for these. */
static int replace(const struct decoder_step *step, struct pattern_workspace *work,
                   const struct decoder_piece *piece, struct str *out, struct error *err)
{
    if (utf8_well_formed(piece->text, piece->bytes) == piece->bytes)
        return pattern_replace(step->pattern, work, piece->text, piece->bytes, step->content, out,
                               err);
    str_add_bytes(out, piece->text, piece->bytes);
    return 0;
}

static void replace_metaspace(const struct decoder_step *step, const struct decoder_piece *piece,
                              bool drop, struct str *out)
{
    size_t length = strlen(step->content);
    const char *at = piece->text, *end = piece->text + piece->bytes, *found;
    while ((found = memmem(at, (size_t)(end - at), step->content, length))) {
        str_add_bytes(out, at, (size_t)(found - at));
        /* The tokenizers library drops every one of the first piece, not only that at its
         * beginning. */
        if (!drop)
            str_add(out, " ");
        at = found + length;
    }
    str_add_bytes(out, at, (size_t)(end - at));
}

static void strip(const struct decoder_step *step, const struct decoder_piece *piece,
                  struct str *out)
{
    size_t length = strlen(step->content), begin = 0, end = piece->bytes;
    for (int64_t n = 0; n < step->start && end - begin >= length; n++) {
        if (memcmp(piece->text + begin, step->content, length) != 0)
            break;
        begin += length;
    }
    for (int64_t n = 0; n < step->stop && end - begin >= length; n++) {
        if (memcmp(piece->text + end - length, step->content, length) != 0)
            break;
        end -= length;
    }
    str_add_bytes(out, piece->text + begin, end - begin);
}

/* As the library does it, text after text in this order, each on what the one before made of it. */
static void clean_up(const char *text, size_t bytes, struct str *out)
{
    static const char *const changes[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    auto_str struct str one, two;
    str_init(&one, DECODER_MAX_BYTES);
    str_init(&two, DECODER_MAX_BYTES);
    str_add_bytes(&one, text, bytes);
    for (size_t i = 0; i < array_length(changes); i++) {
        const char *at = str_text(&one), *end = at + one.length, *found;
        size_t length = strlen(changes[i][0]);
        str_clear(&two);
        while ((found = memmem(at, (size_t)(end - at), changes[i][0], length))) {
            str_add_bytes(&two, at, (size_t)(found - at));
            str_add(&two, changes[i][1]);
            at = found + length;
        }
        str_add_bytes(&two, at, (size_t)(end - at));
        struct str swap = one;
        one = two;
        two = swap;
    }
    str_add_bytes(out, str_text(&one), one.length);
}

static void join_word(const struct decoder_step *step, const struct decoder_piece *piece,
                      bool first, struct str *out)
{
    size_t length = strlen(step->content);
    bool goes_on =
        !first && piece->bytes >= length && memcmp(piece->text, step->content, length) == 0;
    auto_str struct str text;
    str_init(&text, DECODER_MAX_BYTES);
    if (!first && !goes_on)
        str_add(&text, " ");
    str_add_bytes(&text, piece->text + (goes_on ? length : 0),
                  piece->bytes - (goes_on ? length : 0));
    if (step->cleanup && memchr(str_text(&text), ' ', text.length))
        clean_up(str_text(&text), text.length, out);
    else
        str_add_bytes(out, str_text(&text), text.length);
}

static int run_piece(const struct decoder_step *step, struct pattern_workspace *work,
                     const struct decoder_piece *piece, bool first, struct str *out,
                     struct error *err)
{
    char byte;
    switch (step->kind) {
    case DECODER_BYTE_LEVEL:
        byte_alphabet_read(piece->text, piece->bytes, out);
        return 0;
    case DECODER_BYTE_FALLBACK:
        if (is_byte_piece(piece, &byte))
            str_add_bytes(out, &byte, 1);
        else
            str_add_bytes(out, piece->text, piece->bytes);
        return 0;
    case DECODER_REPLACE:
        return replace(step, work, piece, out, err);
    case DECODER_METASPACE:
        replace_metaspace(step, piece, first && !step->keep_first, out);
        return 0;
    case DECODER_STRIP:
        strip(step, piece, out);
        return 0;
    case DECODER_FUSE:
        str_add_bytes(out, piece->text, piece->bytes);
        return 0;
    case DECODER_WORDPIECE:
        join_word(step, piece, first, out);
        return 0;
    }
    return 0;
}

static int run_step(const struct decoder_step *step, struct pattern_workspace *work,
                    const struct texts *in, struct texts *out, struct error *err)
{
    /* A character may be spread over several pieces, so the bytes are joined before anybody looks
     * at characters. */
    bool joins = step->kind == DECODER_FUSE || step->kind == DECODER_BYTE_LEVEL;
    str_clear(&out->all);
    out->count = 0;
    for (size_t i = 0; i < in->count; i++) {
        size_t begin = i > 0 ? in->ends[i - 1] : 0;
        struct decoder_piece piece = {str_text(&in->all) + begin, in->ends[i] - begin};
        if (run_piece(step, work, &piece, i == 0, &out->all, err) < 0)
            return -1;
        if (!joins)
            end_text(out);
    }
    if (joins)
        end_text(out);
    return 0;
}

static int run_steps(const struct decoder *decoder, struct pattern_workspace *work,
                     struct texts *from, struct texts *to, struct str *out, struct error *err)
{
    size_t ids = from->count;
    for (int i = 0; i < decoder->count && !from->all.truncated; i++) {
        if (run_step(&decoder->steps[i], work, from, to, err) < 0)
            return -1;
        struct texts *swap = from;
        from = to;
        to = swap;
    }
    if (from->all.truncated || from->all.length > out->cap - out->length)
        return error_set(err, ERR_LIMIT, "the text of %zu ids is longer than %zu bytes", ids,
                         out->cap);
    str_add_bytes(out, str_text(&from->all), from->all.length);
    return 0;
}

int decoder_run(const struct decoder *decoder, struct pattern_workspace *work,
                const struct decoder_piece *pieces, size_t count, struct str *out,
                struct error *err)
{
    struct texts one, two;
    texts_init(&one, count + 1);
    texts_init(&two, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (decoder->absent && i > 0)
            str_add(&one.all, " ");
        str_add_bytes(&one.all, pieces[i].text, pieces[i].bytes);
        end_text(&one);
    }
    int result = run_steps(decoder, work, &one, &two, out, err);
    texts_free(&one);
    texts_free(&two);
    return result;
}
