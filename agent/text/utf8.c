#include "agent/text/utf8.h"

#include "base/str.h"

#include <string.h>
#include <utf8proc.h>

size_t utf8_decode_last(const char *text, size_t bytes, uint32_t *ret_character)
{
    size_t at = bytes - 1;
    while (at > 0 && ((uint8_t)text[at] & 0xc0) == 0x80)
        at--;
    return utf8_decode(text + at, bytes - at, ret_character);
}

size_t utf8_encode(uint32_t character, char out[UTF8_MAX_BYTES])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)character, (utf8proc_uint8_t *)out);
}

size_t utf8_well_formed(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        uint64_t eight;
        if (bytes - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if (!(eight & 0x8080808080808080)) {
                at += sizeof eight;
                continue;
            }
        }
        bool whole;
        size_t length = utf8_measure(text + at, bytes - at, &whole);
        if (!whole)
            return at;
        at += length;
    }
    return at;
}

void utf8_repair(const char *text, size_t bytes, struct str *out)
{
    while (bytes > 0) {
        size_t good = utf8_well_formed(text, bytes);
        str_add_bytes(out, text, good);
        text += good;
        bytes -= good;
        if (bytes == 0)
            return;
        bool whole;
        size_t sequence = utf8_measure(text, bytes, &whole);
        str_add(out, UTF8_REPLACEMENT);
        text += sequence;
        bytes -= sequence;
    }
}

/* Unicode's property White_Space, as Rust's char::is_whitespace. */
bool utf8_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* Symbols with the property Alphabetic: letters in circles, boxes and discs. */
static bool is_enclosed_letter(uint32_t c)
{
    return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool utf8_is_word(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return is_enclosed_letter(c) || c == 0x200c || c == 0x200d;
    }
}
