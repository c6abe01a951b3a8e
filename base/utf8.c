#include "base/utf8.h"

/* How many bytes a lead byte promises, and what the second one may be (The Unicode Standard, table
 * 3-7). 0: it is no lead byte. */
static size_t promised(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *ret_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

size_t utf8_measure(const char *text, size_t bytes, bool *ret_whole)
{
    const uint8_t *p = (const uint8_t *)text;
    uint8_t low, high;
    size_t length = promised(p[0], &low, &high), there = 1;
    while (there < length && there < bytes && p[there] >= low && p[there] <= high) {
        there++;
        low = 0x80;
        high = 0xbf;
    }
    *ret_whole = there == length;
    return there;
}

size_t utf8_decode(const char *text, size_t bytes, uint32_t *ret_character)
{
    static const uint8_t payload[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t *p = (const uint8_t *)text;
    bool whole;
    size_t length = utf8_measure(text, bytes, &whole);
    if (!whole)
        return 0;
    uint32_t character = p[0] & payload[length];
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (p[i] & 0x3f);
    *ret_character = character;
    return length;
}

/* Below space, and what terminals take for commands as well: DEL and the C1 controls. */
static bool is_control(uint32_t character)
{
    return character < ' ' || (character >= 0x7f && character < 0xa0);
}

/* Turns the direction of the text around it, so that a name reads as another one (Unicode Standard
 * Annex 9, 2), or begins a line. */
static bool is_direction_or_line(uint32_t character)
{
    return character == 0x061c || character == 0x200e || character == 0x200f ||
           (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

void utf8_make_printable(char *text, size_t bytes)
{
    uint32_t character;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = utf8_decode(text + at, bytes - at, &character);
        if (length == 1 && !is_control(character))
            continue;
        if (length == 0 || is_control(character) || is_direction_or_line(character)) {
            /* One byte for another, so that the text's length does not change: it lies in a buffer
             * of that size. */
            text[at] = length == 1 ? ' ' : '?';
            length = 1; /* what follows of it is no beginning of a character */
        }
    }
}
