#include "base/json_scan.h"

#include "base/json.h"
#include "base/json_real.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_KEY SIZE_MAX

/* How much of the text an error quotes. */
enum { QUOTED_BYTES = 40 };
/* A number of fewer characters, without an exponent, is finite: DBL_MAX has 309 digits. */
enum { FINITE_DIGITS = 300 };

struct scan {
    const char *text;
    size_t bytes, at;
    unsigned allow;
    int depth;
    size_t keys, duplicate; /* the keys so far; the one that is an error, or NO_KEY */
    struct json_census census;
    struct error *err;
};

/* ---- errors ---- */

/* Where a token ends, for a reader: a string at its quote, a word or number at what is neither. */
static size_t token_end(const struct scan *s, size_t from)
{
    bool whole;
    size_t end = from + utf8_measure(s->text + from, s->bytes - from, &whole);
    if (s->text[from] == '"') {
        while (end < s->bytes && s->text[end] != '"' && s->text[end] != '\n')
            end += s->text[end] == '\\' && end + 1 < s->bytes ? 2 : 1;
        return end < s->bytes && s->text[end] == '"' ? end + 1 : end;
    }
    if (isalnum((unsigned char)s->text[from]) || s->text[from] == '-')
        while (end < s->bytes &&
               (isalnum((unsigned char)s->text[end]) || strchr("+-.", s->text[end])))
            end++;
    return end;
}

/* Fails at `at`, quoting the token that begins at `token`. The column is that of the character at
 * `at`; at the end of the text, of the last one. */
static int fail_near(struct scan *s, size_t at, size_t token, const char *what)
{
    size_t line = 1, column = 0, last = at < s->bytes ? at + 1 : s->bytes;
    for (size_t i = 0; i < last; i++) {
        bool continues = ((unsigned char)s->text[i] & 0xc0) == 0x80;
        column += !continues || i == at;
        if (s->text[i] == '\n' && i + 1 < last) {
            line++;
            column = 0;
        }
    }
    if (token >= s->bytes)
        return error_set(s->err, ERR_INPUT, "line %zu, column %zu: %s near end of file", line,
                         column, what);
    char quoted[QUOTED_BYTES + 1];
    size_t length = token_end(s, token) - token;
    if (length > QUOTED_BYTES)
        for (length = QUOTED_BYTES; length > 1; length--) /* between characters */
            if (((unsigned char)s->text[token + length] & 0xc0) != 0x80)
                break;
    memcpy(quoted, s->text + token, length);
    utf8_make_printable(quoted, length);
    return error_set(s->err, ERR_INPUT, "line %zu, column %zu: %s near '%.*s'", line, column, what,
                     (int)length, quoted);
}

static int fail(struct scan *s, const char *what)
{
    return fail_near(s, s->at, s->at, what);
}

/* ---- strings ---- */

static bool is_hex(const char *digits)
{
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)digits[i]))
            return false;
    return true;
}

/* Four digits at `at`; -1: there are none. */
static long hex_at(const struct scan *s, size_t at)
{
    char digits[5] = "";
    if (s->bytes - at < 4 || !is_hex(s->text + at))
        return -1;
    memcpy(digits, s->text + at, 4);
    return strtol(digits, NULL, 16);
}

/* The text is at the backslash of \uXXXX. */
static int scan_unicode(struct scan *s, size_t start, bool is_key)
{
    long code = hex_at(s, s->at + 2);
    if (code < 0)
        return fail_near(s, s->at, start, "invalid escape");
    if (code == 0 && (is_key || !(s->allow & JSON_ALLOW_NUL)))
        return fail_near(s, s->at, start, is_key ? "\\u0000 in a key" : "\\u0000 is not allowed");
    s->census.has_nul |= code == 0;
    if (code < 0xd800 || code > 0xdfff) {
        s->at += 6;
        return 0;
    }
    /* a character beyond U+FFFF: two halves, the high one first */
    bool pair = code < 0xdc00 && s->bytes - s->at >= 12 && s->text[s->at + 6] == '\\' &&
                s->text[s->at + 7] == 'u';
    long low = pair ? hex_at(s, s->at + 8) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return fail_near(s, s->at, start, "half of a surrogate pair");
    s->at += 12;
    return 0;
}

static int scan_escape(struct scan *s, size_t start, bool is_key)
{
    char escape = s->at + 1 < s->bytes ? s->text[s->at + 1] : '\0';
    if (escape == 'u')
        return scan_unicode(s, start, is_key);
    if (!escape || !strchr("\"\\/bfnrt", escape))
        return fail_near(s, s->at, start, "invalid escape");
    s->at += 2;
    return 0;
}

/* Whether a byte stands for itself in a string: most do, and are passed over quickly. */
static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The text is at the quote. */
static int scan_string(struct scan *s, bool is_key)
{
    size_t start = s->at++;
    for (;;) {
        while (s->at < s->bytes && is_plain(s->text[s->at]))
            s->at++;
        if (s->at == s->bytes)
            return fail_near(s, s->at, start, "premature end of input");
        unsigned char c = (unsigned char)s->text[s->at];
        if (c == '"') {
            s->at++;
            return 0;
        }
        if (c < 0x20)
            return fail_near(s, s->at, start, "a control character that is not escaped");
        if (c == '\\') {
            if (scan_escape(s, start, is_key))
                return -1;
            continue;
        }
        bool whole;
        size_t length = utf8_measure(s->text + s->at, s->bytes - s->at, &whole);
        if (!whole) {
            char what[32];
            snprintf(what, sizeof what, "byte 0x%02x is not UTF-8", c);
            return fail_near(s, s->at, start, what);
        }
        s->at += length;
    }
}

/* ---- numbers and words ---- */

static size_t skip_digits(struct scan *s)
{
    size_t start = s->at;
    while (s->at < s->bytes && isdigit((unsigned char)s->text[s->at]))
        s->at++;
    return s->at - start;
}

static bool skip(struct scan *s, char c)
{
    bool there = s->at < s->bytes && s->text[s->at] == c;
    s->at += there;
    return there;
}

static bool is_finite(const char *number, size_t bytes)
{
    auto_free char *text = xmalloc(bytes + 1);
    memcpy(text, number, bytes);
    text[bytes] = '\0';
    return isfinite(json_real_value(text));
}

/* false: it is none, and nothing was taken. */
static bool scan_not_a_number(struct scan *s)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; (s->allow & JSON_ALLOW_NAN) && i < array_length(words); i++) {
        size_t length = strlen(words[i]);
        if (s->bytes - s->at >= length && memcmp(s->text + s->at, words[i], length) == 0) {
            s->at += length;
            s->census.nans++;
            return true;
        }
    }
    return false;
}

static int scan_number(struct scan *s)
{
    size_t start = s->at;
    skip(s, '-');
    bool zero = s->at < s->bytes && s->text[s->at] == '0';
    size_t digits = skip_digits(s);
    /* RFC 8259: no leading zero, and digits on both sides of the point. */
    bool right = digits == 1 || (digits > 1 && !zero), power = false;
    if (right && skip(s, '.'))
        right = skip_digits(s) > 0;
    if (right && (skip(s, 'e') || skip(s, 'E'))) {
        power = true;
        if (!skip(s, '+'))
            skip(s, '-');
        right = skip_digits(s) > 0;
    }
    s->census.numbers++;
    if (!right)
        return fail_near(s, start, start, "invalid number");
    if ((power || s->at - start > FINITE_DIGITS) && !is_finite(s->text + start, s->at - start))
        return fail_near(s, start, start, "a number that is too large");
    return 0;
}

static int scan_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < array_length(words); i++) {
        size_t length = strlen(words[i]);
        if (s->bytes - s->at >= length && memcmp(s->text + s->at, words[i], length) == 0) {
            s->at += length;
            return 0;
        }
    }
    char c = s->text[s->at];
    if ((unsigned char)c >= 0x80)
        return fail(s, "a character that is not JSON");
    return fail(s, isalpha((unsigned char)c) ? "invalid token" : "unexpected token");
}

/* ---- values ---- */

static void skip_space(struct scan *s)
{
    while (s->at < s->bytes && (s->text[s->at] == ' ' || s->text[s->at] == '\n' ||
                                s->text[s->at] == '\r' || s->text[s->at] == '\t'))
        s->at++;
}

static int scan_value(struct scan *s);

static int scan_key(struct scan *s)
{
    if (s->at == s->bytes || s->text[s->at] != '"')
        return fail(s, "string expected");
    size_t start = s->at;
    if (scan_string(s, true))
        return -1;
    if (s->keys++ == s->duplicate)
        return fail_near(s, start, start, "duplicate object key");
    skip_space(s);
    return skip(s, ':') ? 0 : fail(s, "':' expected");
}

/* The text is behind the bracket that opens. */
static int scan_members(struct scan *s, bool is_object)
{
    char close = is_object ? '}' : ']';
    skip_space(s);
    if (skip(s, close))
        return 0;
    for (;;) {
        skip_space(s);
        if ((is_object && scan_key(s)) || scan_value(s))
            return -1;
        skip_space(s);
        if (skip(s, close))
            return 0;
        if (!skip(s, ','))
            return fail(s, is_object ? "'}' expected" : "']' expected");
    }
}

static int scan_value(struct scan *s)
{
    skip_space(s);
    if (s->at == s->bytes)
        return fail(s, "premature end of input");
    char c = s->text[s->at];
    if (c == '"')
        return scan_string(s, false);
    if (scan_not_a_number(s))
        return 0;
    if (c == '-' || isdigit((unsigned char)c))
        return scan_number(s);
    if (c != '{' && c != '[')
        return scan_word(s);
    if (s->depth == JSON_MAX_DEPTH)
        return fail(s, "nested too deep");
    s->depth++;
    s->at++;
    int result = scan_members(s, c == '{');
    s->depth--;
    return result;
}

static int scan_text(struct scan *s)
{
    skip_space(s);
    bool opens = s->at < s->bytes && (s->text[s->at] == '{' || s->text[s->at] == '[');
    if (!opens && !(s->allow & JSON_ALLOW_SCALAR))
        return fail(s, "'[' or '{' expected");
    if (scan_value(s))
        return -1;
    skip_space(s);
    return s->at == s->bytes ? 0 : fail(s, "end of file expected");
}

int json_scan(const char *text, size_t bytes, unsigned allow, struct json_census *ret_census,
              struct error *err)
{
    struct scan s = {.text = text, .bytes = bytes, .allow = allow, .duplicate = NO_KEY, .err = err};
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* which no quote would show */
        return error_set(err, ERR_INPUT,
                         "begins with a byte order mark, which JSON has not (RFC 8259): save it as "
                         "UTF-8 without one");
    int result = scan_text(&s);
    *ret_census = s.census;
    return result;
}

void json_scan_duplicate(const char *text, size_t bytes, size_t key, struct error *err)
{
    struct scan s = {.text = text,
                     .bytes = bytes,
                     .allow = JSON_ALLOW_NUL | JSON_ALLOW_SCALAR | JSON_ALLOW_NAN,
                     .duplicate = key,
                     .err = err};
    int result = scan_text(&s);
    assert(result < 0);
    (void)result;
}
