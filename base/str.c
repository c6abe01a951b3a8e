#include "base/str.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_init(struct str *s, size_t cap)
{
    *s = (struct str){.cap = cap};
}

void str_free(struct str *s)
{
    if (!s)
        return;
    free(s->text);
    str_init(s, s->cap);
}

void str_clear(struct str *s)
{
    s->length = 0;
    s->truncated = false;
    if (s->text)
        s->text[0] = '\0';
}

static void reserve(struct str *s, size_t more)
{
    size_t need = s->length + more + 1;
    if (need <= s->size)
        return;
    size_t size = s->size ? s->size : 64;
    while (size < need)
        size *= 2;
    s->text = xrealloc(s->text, size);
    s->size = size;
}

void str_add_bytes(struct str *s, const char *bytes, size_t count)
{
    assert(s->cap > 0);
    size_t room = s->cap - s->length;
    if (count > room) {
        count = room;
        s->truncated = true;
    }
    reserve(s, count);
    memcpy(s->text + s->length, bytes, count);
    s->length += count;
    s->text[s->length] = '\0';
}

void str_add(struct str *s, const char *text)
{
    str_add_bytes(s, text, strlen(text));
}

void str_printf(struct str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    auto_free char *text = NULL;
    int n = vasprintf(&text, format, args);
    va_end(args);
    assert(n >= 0);
    str_add_bytes(s, text, (size_t)n);
}

const char *str_text(const struct str *s)
{
    return s->text ? s->text : "";
}

bool str_to_i64(const char *text, int64_t low, int64_t high, int64_t *ret_value)
{
    if (!text || !*text)
        return false;
    /* strtoll() skips blanks, stops at what is no digit and clamps what is too large: only errno
     * and *end show it. */
    errno = 0;
    char *end = NULL;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || isspace((unsigned char)text[0]) || value < low || value > high)
        return false;
    *ret_value = value;
    return true;
}

bool str_to_double(const char *text, double *ret_value)
{
    if (!text || !*text)
        return false;
    char *end = NULL;
    double value = strtod(text, &end);
    if (*end || isspace((unsigned char)text[0]) || !isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

bool str_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

bool str_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_is_listed(const char *names, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = names; bytes && (at = strstr(at, name)); at += bytes)
        if ((at == names || at[-1] == ',') && (at[bytes] == '\0' || at[bytes] == ','))
            return true;
    return false;
}

const char *str_after_last(const char *text, char character)
{
    const char *last = strrchr(text, character);
    return last ? last + 1 : text;
}
