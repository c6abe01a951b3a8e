#include "agent/text/bert_normalizer.h"

#include "agent/text/utf8.h"
#include "base/str.h"

#include <stdint.h>
#include <utf8proc.h>

static void add(struct str *out, uint32_t character)
{
    char bytes[UTF8_MAX_BYTES];
    str_add_bytes(out, bytes, utf8_encode(character, bytes));
}

/* CJK Unified Ideographs and what belongs to them, in the blocks that the library lists. */
static bool is_ideograph(uint32_t c)
{
    /* 0x2b920 is the library's; Google's BERT has 0x2b820. Models are used with the library. */
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_dropped(uint32_t c)
{
    if (c == 0 || c == 0xfffd)
        return true;
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CO;
}

/* Of one character; U+0130 is the only one that becomes two. */
static void add_lower(struct str *out, uint32_t c)
{
    if (c == 0x130)
        str_add(out, "i\xcc\x87");
    else
        add(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

static void add_cased(const struct bert_normalizer *n, struct str *out, uint32_t c)
{
    if (n->lowercase)
        add_lower(out, c);
    else
        add(out, c);
}

/* Marks are all dropped, so their order does not matter and characters can be decomposed alone. */
static void add_stripped(const struct bert_normalizer *n, struct str *out, uint32_t c)
{
    enum { MOST = 32 }; /* characters that one is decomposed to; Unicode 15 has at most 4 */
    utf8proc_int32_t parts[MOST];
    int ignored = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)c, parts, MOST, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &ignored);
    for (utf8proc_ssize_t i = 0; i < count && i < MOST; i++)
        if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN)
            add_cased(n, out, (uint32_t)parts[i]);
}

void bert_normalize(const struct bert_normalizer *normalizer, const char *text, size_t bytes,
                    struct str *out)
{
    const struct bert_normalizer *n = normalizer;
    uint32_t c;
    for (size_t at = 0; at < bytes;) {
        at += utf8_decode(text + at, bytes - at, &c);
        if (n->clean_text && is_dropped(c))
            continue;
        if (n->clean_text && utf8_is_space(c))
            c = ' ';
        bool apart = n->handle_chinese_chars && is_ideograph(c);
        if (apart)
            str_add(out, " ");
        if (n->strip_accents)
            add_stripped(n, out, c);
        else
            add_cased(n, out, c);
        if (apart)
            str_add(out, " ");
    }
}
