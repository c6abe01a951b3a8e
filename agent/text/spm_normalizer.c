#include "agent/text/spm_normalizer.h"

#include "agent/text/precompiled.h"
#include "agent/text/spm_proto.h"
#include "agent/text/utf8.h"
#include "base/str.h"

#include <string.h>

int spm_normalizer_open(const struct spm_proto *proto, const struct added *user_pieces,
                        struct spm_normalizer *normalizer, struct error *err)
{
    *normalizer = (struct spm_normalizer){.proto = proto, .user_pieces = user_pieces};
    if (proto->charsmap.bytes == 0)
        return 0;
    return precompiled_open(proto->charsmap.text, proto->charsmap.bytes, &normalizer->charsmap,
                            err) < 0
               ? error_wrap(err, "normalizer_spec.precompiled_charsmap")
               : 0;
}

void spm_normalizer_close(struct spm_normalizer *normalizer)
{
    precompiled_close(normalizer->charsmap);
    *normalizer = (struct spm_normalizer){0};
}

/* What the beginning of the text becomes, and how long that is. */
static size_t take_prefix(const struct spm_normalizer *n, const char *text, size_t bytes,
                          struct spm_text *ret_result)
{
    /* User-defined pieces are found first and stay as they are: the charsmap must not rewrite their
     * letters. */
    const struct added_token *user = added_find(n->user_pieces, text, bytes);
    size_t length = user ? user->bytes : 0;
    uint32_t ignored;
    if (length == 0 && n->charsmap) {
        const char *replacement = precompiled_find_longest(n->charsmap, text, bytes, &length);
        if (replacement) {
            *ret_result = (struct spm_text){replacement, strlen(replacement)};
            return length;
        }
    }
    if (length == 0)
        length = utf8_decode(text, bytes, &ignored);
    *ret_result = (struct spm_text){text, length};
    if (length > 0)
        return length;
    *ret_result = (struct spm_text){UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT)};
    return 1; /* a replacement ended within a character */
}

static void add_space(const struct spm_normalizer *n, struct str *out)
{
    str_add(out, n->proto->escape_whitespaces ? "\xe2\x96\x81" : " ");
}

static void add_with_spaces(const struct spm_normalizer *n, const struct spm_text *piece,
                            struct str *out)
{
    const char *at = piece->text, *end = at + piece->bytes, *space;
    while ((space = memchr(at, ' ', (size_t)(end - at)))) {
        str_add_bytes(out, at, (size_t)(space - at));
        add_space(n, out);
        at = space + 1;
    }
    str_add_bytes(out, at, (size_t)(end - at));
}

static void strip_end(const struct spm_normalizer *n, size_t from, struct str *out)
{
    const char *space = n->proto->escape_whitespaces ? "\xe2\x96\x81" : " ";
    size_t length = strlen(space);
    while (out->length - from >= length &&
           memcmp(out->text + out->length - length, space, length) == 0)
        out->length -= length;
    if (out->text)
        out->text[out->length] = '\0';
}

void spm_normalize(const struct spm_normalizer *n, const char *text, size_t bytes, struct str *out)
{
    const struct spm_proto *p = n->proto;
    bool removes = p->remove_extra_whitespaces, after_space = removes;
    struct spm_text piece;
    size_t at = 0, length, from = out->length;
    /* Spaces are looked for behind the replacements: NFKC makes one of other blanks (U+3000). */
    while (removes && at < bytes) {
        length = take_prefix(n, text + at, bytes - at, &piece);
        if (piece.bytes != 1 || *piece.text != ' ')
            break;
        at += length;
    }
    if (at == bytes)
        return;
    if (!p->treat_whitespace_as_suffix && p->add_dummy_prefix)
        add_space(n, out);
    for (; at < bytes; at += length) {
        length = take_prefix(n, text + at, bytes - at, &piece);
        while (after_space && piece.bytes > 0 && *piece.text == ' ') {
            piece.text++;
            piece.bytes--;
        }
        add_with_spaces(n, &piece, out);
        if (piece.bytes > 0)
            after_space = removes && piece.text[piece.bytes - 1] == ' ';
    }
    if (removes)
        strip_end(n, from, out);
    if (p->treat_whitespace_as_suffix && p->add_dummy_prefix)
        add_space(n, out);
}
