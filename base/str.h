/* A growing string with a stated cap. Text beyond the cap is dropped and remembered in `truncated`,
 * so a caller that must not lose anything checks that flag once, at the end. */
#ifndef SHOAL_BASE_STR_H
#define SHOAL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *text;     /* always terminated once anything was added; NULL before. Owned. */
    size_t length;  /* bytes, without the terminator */
    size_t size;    /* bytes allocated */
    size_t cap;     /* most bytes of text it may hold */
    bool truncated; /* something was dropped */
};

void str_init(struct str *s, size_t cap);
void str_free(struct str *s); /* also resets; NULL-safe */
void str_clear(struct str *s);
void str_add(struct str *s, const char *text);
void str_add_bytes(struct str *s, const char *bytes, size_t count);
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const struct str *s); /* never NULL */

#define auto_str __attribute__((cleanup(str_free)))

/* Reads a whole decimal number within [low, high]; false and nothing written if text is anything
 * else. */
bool str_to_i64(const char *text, int64_t low, int64_t high, int64_t *ret_value);
/* The same for a finite floating-point number. */
bool str_to_double(const char *text, double *ret_value);
bool str_starts_with(const char *text, const char *prefix);
bool str_ends_with(const char *text, const char *suffix);
/* Whether both are the same text, or both are NULL. */
bool str_equal(const char *a, const char *b);
/* Whether `name` is one of `names`, which have commas between them. */
bool str_is_listed(const char *names, const char *name);
/* What is behind the last such character (of a path and '/': the file's name), or all of text. */
const char *str_after_last(const char *text, char character);
#endif
