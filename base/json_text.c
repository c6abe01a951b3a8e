#include "base/json_text.h"

#include "base/json_real.h"
#include "base/utf8.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DIGITS = 10 };

/* Most characters stand for themselves, and are added together. */
static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

static void add_escape(char c, struct str *out)
{
    static const char named[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *found = c ? strchr(named, c) : NULL;
    if (found)
        str_add_bytes(out, (char[]){'\\', names[found - named]}, 2);
    else
        str_printf(out, "\\u%04X", (unsigned)(unsigned char)c);
}

/* Adds the character at the beginning of the text, which is not plain; returns its bytes. */
static size_t add_character(const char *text, struct str *out)
{
    static const char unknown[] = "????";
    if ((unsigned char)*text < 0x80) {
        add_escape(*text, out);
        return 1;
    }
    if (text[0] == '\xc0' && text[1] == '\x80') {
        add_escape('\0', out);
        return 2;
    }
    bool whole;
    size_t length = utf8_measure(text, strnlen(text, sizeof unknown - 1), &whole);
    str_add_bytes(out, whole ? text : unknown, length);
    return length;
}

void json_text(const char *text, struct str *out)
{
    str_add_bytes(out, "\"", 1);
    while (*text) {
        size_t plain = 0;
        while (is_plain(text[plain]))
            plain++;
        str_add_bytes(out, text, plain);
        text += plain;
        if (*text)
            text += add_character(text, out);
    }
    str_add_bytes(out, "\"", 1);
}

void json_number(double value, struct str *out)
{
    char text[JSON_REAL_BYTES] = "null";
    if (isfinite(value))
        json_real_format(value, DIGITS, text);
    str_add(out, text);
}
