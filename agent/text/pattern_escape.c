/* Characters, escapes and classes of an expression. */
#include "agent/text/pattern_internal.h"
#include "agent/text/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* What \w is there: UTS #18's word characters; outside of [] Latin-1's small digits and fractions,
 * too. PCRE2's own knows no marks and only one connector. */
#define WORD  "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LATIN "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

int pattern_refuse(const struct rewriting *r, size_t bytes, const char *why)
{
    return error_set(r->err, ERR_UNSUPPORTED, "expression, byte %td: %.*s %s",
                     r->at - r->expression, (int)bytes, r->at, why);
}

void pattern_begin_item(struct rewriting *r)
{
    r->item = ITEM_PLAIN;
    r->item_begin = r->out->length;
    r->last = '\0';
}

/* ---- characters ---- */

static void add_code(struct rewriting *r, uint32_t character)
{
    str_printf(r->out, "\\x{%x}", (unsigned)character);
}

/* Under the flag i Oniguruma also takes a ligature for its letters, and letters of other alphabets
 * for several ("ss" and U+00DF). */
static int check_letter(struct rewriting *r, uint32_t character, size_t bytes)
{
    static const char *const pairs[] = {"ss", "ff", "fi", "fl", "st"};
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)character);
    if (!r->caseless)
        return 0;
    if (character >= 0x80 && category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME)
        return pattern_refuse(r, bytes, "is not supported under the flag i: a letter beyond ASCII");
    char pair[] = {r->last, character < 0x80 ? (char)tolower((int)character) : '\0', '\0'};
    for (size_t i = 0; r->last && i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pair, pairs[i]) == 0)
            return pattern_refuse(r, bytes,
                                  "is not supported under the flag i: with the letter before it "
                                  "a ligature matches, too");
    return 0;
}

/* A character for itself, outside of a class; the one behind r->at at `from` bytes. */
static int add_character(struct rewriting *r, uint32_t character, size_t bytes)
{
    if (check_letter(r, character, bytes) < 0)
        return -1;
    pattern_begin_item(r);
    if (character < 0x80)
        r->last = (char)tolower((int)character);
    return 0;
}

/* ---- escapes ---- */

/* The number of \x41, \x{41} and \u0041, and how long they are; 0: none of these. */
static size_t read_code(const char *at, uint32_t *ret_character)
{
    char digits[9] = "";
    bool braces = at[1] == 'x' && at[2] == '{';
    const char *from = at + 2 + braces;
    size_t most = braces ? 8 : at[1] == 'u' ? 4 : 2, count = 0;
    while (count < most && isxdigit((unsigned char)from[count]))
        count++;
    if (count == 0 || (at[1] == 'u' && count < most) || (braces && from[count] != '}'))
        return 0;
    memcpy(digits, from, count);
    *ret_character = (uint32_t)strtoul(digits, NULL, 16);
    return (size_t)(from - at) + count + braces;
}

static int rewrite_code(struct rewriting *r, bool in_class)
{
    uint32_t character = 0;
    size_t length = read_code(r->at, &character);
    if (length == 0)
        return pattern_refuse(r, 2, "is not supported without digits");
    if (r->at[1] == 'x' && r->at[2] != '{' && character >= 0x80)
        return pattern_refuse(r, length, "is a byte, not a character: write \\x{...}");
    if (in_class ? check_letter(r, character, length) < 0 : add_character(r, character, length) < 0)
        return -1;
    add_code(r, character);
    r->at += length;
    return 0;
}

/* \p{...}; without braces it is the letter p. */
static int rewrite_property(struct rewriting *r, bool in_class)
{
    size_t length = strcspn(r->at, "}");
    if (r->at[2] != '{' || !r->at[length])
        return pattern_refuse(r, 2, "is not supported without {...}");
    if (in_class && r->caseless)
        return pattern_refuse(r, length + 1, "within [] is not supported under the flag i");
    if (!in_class)
        pattern_begin_item(r);
    str_add_bytes(r->out, r->at, length + 1);
    r->at += length + 1;
    return 0;
}

/* Sets of characters, within [] and outside. NULL: it is none, or none that may stand there. */
static const char *find_set(char escape, bool in_class)
{
    switch (escape) {
    case 'd':
        return "\\d";
    case 'D':
        return "\\D";
    case 's': /* PCRE2's own has U+180E too */
        return "\\p{White_Space}";
    case 'S':
        return "\\P{White_Space}";
    case 'w':
        return in_class ? WORD : "[" WORD LATIN "]";
    case 'W':
        return in_class ? NULL : "[^" WORD LATIN "]";
    default:
        return NULL;
    }
}

static int rewrite_set(struct rewriting *r, const char *set, bool in_class)
{
    if (in_class && r->caseless && strchr("DSw", r->at[1]))
        return pattern_refuse(r, 2, "within [] is not supported under the flag i");
    if (!in_class)
        pattern_begin_item(r);
    str_add(r->out, set);
    r->at += 2;
    return 0;
}

/* \0, \07 and \012. */
static int rewrite_octal(struct rewriting *r, bool in_class)
{
    uint32_t character = 0;
    size_t length = 2;
    for (; length < 4 && r->at[length] >= '0' && r->at[length] <= '7'; length++)
        character = 8 * character + (uint32_t)(r->at[length] - '0');
    if (!in_class)
        pattern_begin_item(r);
    add_code(r, character);
    r->at += length;
    return 0;
}

/* Behind the \ there is no letter with a meaning: a character for itself. */
static int rewrite_literal(struct rewriting *r, bool in_class)
{
    uint32_t character;
    size_t bytes = utf8_decode(r->at + 1, strlen(r->at + 1), &character);
    if (in_class ? check_letter(r, character, 1 + bytes) < 0
                 : add_character(r, character, 1 + bytes) < 0)
        return -1;
    bool bare = isalpha((unsigned char)r->at[1]); /* which PCRE2 may give a meaning behind a \ */
    str_add_bytes(r->out, r->at + bare, 1 + bytes - bare);
    r->at += 1 + bytes;
    return 0;
}

static int rewrite_other_escape(struct rewriting *r, bool in_class)
{
    static const char controls[] = "tnrfaev", plain[] = "ijlmqEFIJLQTUV", anchors[] = "AZz";
    unsigned char escape = (unsigned char)r->at[1];
    if (escape == '0')
        return rewrite_octal(r, in_class);
    if (!isalnum(escape) || strchr(plain, escape))
        return rewrite_literal(r, in_class);
    bool works = strchr(controls, escape) || (!in_class && strchr(anchors, escape)) ||
                 (!in_class && isdigit(escape) && !isdigit((unsigned char)r->at[2]));
    if (!works)
        return pattern_refuse(r, 2, in_class ? "within [] is not supported" : "is not supported");
    if (!in_class)
        pattern_begin_item(r);
    if (escape == 'v') /* PCRE2's is a set */
        str_add(r->out, "\\x{b}");
    else
        str_add_bytes(r->out, r->at, 2);
    r->at += 2;
    return 0;
}

static int rewrite_escape(struct rewriting *r, bool in_class)
{
    char escape = r->at[1];
    const char *set = find_set(escape, in_class);
    if (!escape)
        return error_set(r->err, ERR_INPUT, "expression, byte %td: \\ at its end",
                         r->at - r->expression);
    if (set)
        return rewrite_set(r, set, in_class);
    if (escape == 'p' || escape == 'P')
        return rewrite_property(r, in_class);
    if (escape == 'x' || escape == 'u')
        return rewrite_code(r, in_class);
    return rewrite_other_escape(r, in_class);
}

/* ---- classes ---- */

static int rewrite_class_character(struct rewriting *r)
{
    uint32_t character;
    size_t bytes = utf8_decode(r->at, strlen(r->at), &character);
    if (*r->at == '[')
        return pattern_refuse(r, 1, "within [] is not supported");
    if (r->at[0] == '&' && r->at[1] == '&')
        return pattern_refuse(r, 2, "within [] is not supported");
    if (r->caseless && character >= 0x80 && r->at[-1] == '-')
        return pattern_refuse(r, bytes, "is not supported under the flag i: a range beyond ASCII");
    if (check_letter(r, character, bytes) < 0)
        return -1;
    str_add_bytes(r->out, r->at, bytes);
    r->at += bytes;
    return 0;
}

int pattern_rewrite_class(struct rewriting *r)
{
    const char *begin = r->at;
    size_t first = begin[1] == '^' ? 2 : 1;
    pattern_begin_item(r);
    if (begin[first] == ']') /* that comes first is a member */
        first++;
    str_add_bytes(r->out, begin, first);
    r->at += first;
    while (*r->at && *r->at != ']')
        if (*r->at == '\\' ? rewrite_escape(r, true) < 0 : rewrite_class_character(r) < 0)
            return -1;
    if (!*r->at) {
        r->at = begin;
        return error_set(r->err, ERR_INPUT, "expression, byte %td: [ without ]",
                         begin - r->expression);
    }
    str_add(r->out, "]");
    r->at++;
    return 0;
}

/* ---- outside of classes ---- */

int pattern_rewrite_character(struct rewriting *r)
{
    uint32_t character;
    size_t bytes = utf8_decode(r->at, strlen(r->at), &character);
    if (add_character(r, character, bytes) < 0)
        return -1;
    if (*r->at == '{')
        str_add(r->out, "\\");
    str_add_bytes(r->out, r->at, bytes);
    r->at += bytes;
    return 0;
}

int pattern_rewrite_escape(struct rewriting *r)
{
    return rewrite_escape(r, false);
}
