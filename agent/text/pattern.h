/* The regular expressions of tokenizer files. They are written for Oniguruma's syntax and run here
 * by PCRE2 over UTF-8 with Unicode properties: what the two read differently is rewritten, or
 * refused with its name. (Debian's PCRE2 knows the characters of Unicode 14; later ones match no
 * property but \P{...}.) Matching is bounded in steps and memory. Also plain texts to look for,
 * which need no expression. */
#ifndef SHOAL_AGENT_TEXT_PATTERN_H
#define SHOAL_AGENT_TEXT_PATTERN_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PATTERN_MAX_BYTES = 16 * 1024,     /* of an expression */
    PATTERN_MAX_STEPS = 10000000,      /* of one search */
    PATTERN_MAX_STACK_BYTES = 1 << 20, /* of a thread */
    PATTERN_MAX_HEAP_KIB = 64 * 1024,  /* of one search where there is no machine code */
};

struct spec_part;
struct str;
struct pattern;
/* What one thread needs to search; shared by all patterns. */
struct pattern_work;

/* Compiles an expression. ERR_INPUT or ERR_UNSUPPORTED with what is wrong and at which byte. */
int pattern_open(const char *expression, struct pattern **ret_pattern, struct error *err);
/* A pattern that finds exactly this text, which is not empty. */
struct pattern *pattern_open_text(const char *text);
/* The pattern of a part, a String or a Regex. Errors name the part. */
int pattern_open_part(const struct spec_part *part, struct pattern **ret_pattern,
                      struct error *err);
void pattern_close(struct pattern *pattern); /* NULL-safe */

struct pattern_work *pattern_work_open(void);
void pattern_work_close(struct pattern_work *work); /* NULL-safe */

/* Looks for the first match that is not empty, from byte `from` on, in a well-formed
 * text[0..bytes). Returns 1 and where it is, 0 if there is none, or -1 with ERR_LIMIT. Many threads
 * may search with one pattern, each with its own work. */
int pattern_find(const struct pattern *pattern, struct pattern_work *work, const char *text,
                 size_t bytes, size_t from, size_t *ret_begin, size_t *ret_end, struct error *err);

/* Adds the text with each match replaced. */
int pattern_replace(const struct pattern *pattern, struct pattern_work *work, const char *text,
                    size_t bytes, const char *replacement, struct str *out, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
