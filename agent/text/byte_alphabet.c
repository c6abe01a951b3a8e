#include "agent/text/byte_alphabet.h"

#include "agent/text/utf8.h"
#include "base/str.h"

#include <string.h>

static bool stands_for_itself(uint32_t byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
           (byte >= 174 && byte <= 255);
}

uint32_t byte_alphabet_character(uint8_t byte)
{
    if (stands_for_itself(byte))
        return byte;
    if (byte < 33)
        return 0x100u + byte;
    if (byte < 161)
        return 0x100u + 33 + (byte - 127u); /* 127 .. 160 */
    return 0x100u + 67;                     /* 173 */
}

/* The byte that a character stands for; -1 if none. */
static int byte_of(uint32_t character)
{
    if (stands_for_itself(character))
        return (int)character;
    uint32_t n = character - 0x100;
    if (character < 0x100 || n > 67)
        return -1;
    return (int)(n < 33 ? n : n < 67 ? n - 33 + 127 : 173);
}

void byte_alphabet_spell(const char *bytes, size_t count, struct str *out)
{
    for (size_t i = 0; i < count; i++) {
        char text[UTF8_MAX_BYTES];
        size_t length = utf8_encode(byte_alphabet_character((uint8_t)bytes[i]), text);
        str_add_bytes(out, text, length);
    }
}

void byte_alphabet_read(const char *text, size_t bytes, struct str *out)
{
    size_t before = out->length;
    for (size_t at = 0; at < bytes;) {
        uint32_t character = 0;
        size_t length = utf8_decode(text + at, bytes - at, &character);
        int byte = length > 0 ? byte_of(character) : -1;
        if (byte < 0) {
            out->length = before;
            str_add_bytes(out, text, bytes);
            return;
        }
        char one = (char)byte;
        str_add_bytes(out, &one, 1);
        at += length;
    }
}
