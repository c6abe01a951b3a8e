#include "agent/text/precompiled.h"

#include "agent/text/utf8.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { WHOLE_CLUSTER_BYTES = 6 }; /* shorter ones are looked up as a whole */

struct precompiled {
    uint8_t *blob;
    const uint8_t *units; /* [unit_count] u32, unaligned */
    size_t unit_count;
    const char *texts; /* [texts_bytes], the last byte is zero; well-formed */
    size_t texts_bytes;
};

/* ---- opening ---- */

/* The bytes, with one zero byte more behind them. */
static uint8_t *decode_base64(const char *base64, size_t *ret_bytes)
{
    size_t length = strlen(base64);
    int padding = 0, decoded;
    if (length == 0 || length % 4 != 0 || length > INT_MAX)
        return NULL;
    uint8_t *blob = xmalloc(length / 4 * 3 + 1);
    decoded = EVP_DecodeBlock(blob, (const unsigned char *)base64, (int)length);
    while (padding < 2 && base64[length - 1 - (size_t)padding] == '=')
        padding++;
    if (decoded < padding) {
        free(blob);
        return NULL;
    }
    *ret_bytes = (size_t)(decoded - padding);
    blob[*ret_bytes] = 0;
    return blob;
}

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Takes the blob, which has a zero byte behind it. */
static int open_blob(uint8_t *taken, size_t bytes, struct precompiled **ret_precompiled,
                     struct error *err)
{
    auto_free uint8_t *blob = taken;
    size_t array = 0;
    if (bytes >= 4)
        array = read_u32(blob);
    if (bytes < 4 || array < 4 || array % 4 != 0 || array > bytes - 4)
        return error_set(
            err, ERR_INPUT,
            "%zu bytes with a table of %zu: it is cut off, or no table of SentencePiece", bytes,
            array);
    const char *texts = (const char *)blob + 4 + array;
    size_t texts_bytes = bytes - 4 - array;
    size_t good = utf8_well_formed(texts, texts_bytes);
    if (good < texts_bytes)
        return error_set(err, ERR_INPUT, "replacements are no UTF-8 at byte %zu", good);
    struct precompiled *p = xcalloc(1, sizeof *p);
    *p = (struct precompiled){
        .units = blob + 4, .unit_count = array / 4, .texts = texts, .texts_bytes = texts_bytes + 1};
    p->blob = take(blob);
    *ret_precompiled = p;
    return 0;
}

int precompiled_open(const void *content, size_t bytes, struct precompiled **ret_precompiled,
                     struct error *err)
{
    uint8_t *blob = xmalloc(bytes + 1);
    memcpy(blob, content, bytes);
    blob[bytes] = 0;
    return open_blob(blob, bytes, ret_precompiled, err);
}

int precompiled_open_base64(const char *base64, struct precompiled **ret_precompiled,
                            struct error *err)
{
    size_t bytes = 0;
    uint8_t *blob = decode_base64(base64, &bytes);
    return blob ? open_blob(blob, bytes, ret_precompiled, err)
                : error_set(err, ERR_INPUT, "must be base64");
}

void precompiled_close(struct precompiled *precompiled)
{
    if (!precompiled)
        return;
    free(precompiled->blob);
    free(precompiled);
}

/* ---- running ---- */

/* The unit at an index of the array; one that matches no byte if it is beyond. */
static uint32_t unit_at(const struct precompiled *p, size_t index)
{
    return index < p->unit_count ? read_u32(p->units + 4 * index) : 1U << 31;
}

/* Darts-clone's unit: bits 0-7 label, 8 has a leaf, 9 the offset counts in 256s, 10-30 offset, 31
 * is a leaf. */
static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1U << 9) >> 6);
}

/* The replacement that a leaf's unit names; NULL: there is none. */
static const char *replacement_at(const struct precompiled *p, size_t index)
{
    size_t at = unit_at(p, index) & ~(1U << 31);
    bool is_within = at < p->texts_bytes && ((uint8_t)p->texts[at] & 0xc0) != 0x80;
    return is_within ? p->texts + at : NULL;
}

/* What the shortest or the longest beginning of the text that has a replacement becomes, and how
 * long that is; NULL: none has. */
static const char *find(const struct precompiled *p, const char *text, size_t bytes, bool longest,
                        size_t *ret_length)
{
    const char *found = NULL;
    size_t index = offset_of(unit_at(p, 0));
    for (size_t i = 0; i < bytes && text[i]; i++) {
        index ^= (uint8_t)text[i];
        uint32_t unit = unit_at(p, index);
        /* Bit 31 is compared with the label, so that a leaf's value never passes for a byte. */
        if ((unit & (1U << 31 | 0xff)) != (uint8_t)text[i])
            break;
        index ^= offset_of(unit);
        if (!(unit >> 8 & 1))
            continue;
        found = replacement_at(p, index);
        *ret_length = i + 1;
        if (!longest)
            break;
    }
    return found;
}

const char *precompiled_find_longest(const struct precompiled *precompiled, const char *text,
                                     size_t bytes, size_t *ret_length)
{
    const char *found = find(precompiled, text, bytes, true, ret_length);
    if (!found)
        *ret_length = 0;
    return found;
}

/* (The library replaces the whole text by what its shortest beginning becomes.) */
static const char *find_shortest(const struct precompiled *p, const char *text, size_t bytes)
{
    size_t ignored;
    return find(p, text, bytes, false, &ignored);
}

static void add_character(const struct precompiled *p, const char *text, size_t bytes,
                          struct str *out)
{
    const char *replacement = find_shortest(p, text, bytes);
    if (replacement)
        str_add(out, replacement);
    else
        str_add_bytes(out, text, bytes);
}

static void add_cluster(const struct precompiled *p, const char *text, size_t bytes,
                        struct str *out)
{
    const char *replacement = bytes < WHOLE_CLUSTER_BYTES ? find_shortest(p, text, bytes) : NULL;
    uint32_t ignored;
    if (replacement) {
        str_add(out, replacement);
        return;
    }
    for (size_t at = 0, length; at < bytes; at += length) {
        length = utf8_decode(text + at, bytes - at, &ignored);
        add_character(p, text + at, length, out);
    }
}

void precompiled_run(const struct precompiled *precompiled, const char *text, size_t bytes,
                     struct str *out)
{
    size_t begin = 0, end = 0;
    utf8proc_int32_t state = 0;
    uint32_t last = 0, character;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = utf8_decode(text + at, bytes - at, &character);
        if (at > 0 && utf8proc_grapheme_break_stateful((utf8proc_int32_t)last,
                                                       (utf8proc_int32_t)character, &state)) {
            add_cluster(precompiled, text + begin, at - begin, out);
            begin = at;
        }
        last = character;
        end = at + length;
    }
    add_cluster(precompiled, text + begin, end - begin, out);
}
