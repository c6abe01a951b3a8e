/* The regular expressions of tokenizer files. They are written for Oniguruma's syntax and run here
 * by PCRE2 over UTF-8 with Unicode properties (pattern_rewrite.h). (Debian's PCRE2 knows the
 * characters of Unicode 14; later ones match no property but \P{...}.) Matching is bounded in steps
 * and memory. Also plain texts to look for, which need no expression. */
#ifndef SHOAL_AGENT_TEXT_PATTERN_H
#define SHOAL_AGENT_TEXT_PATTERN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PATTERN_MAX_BYTES = 16 * 1024,     /* of an expression */
    PATTERN_MAX_STEPS = 10000000,      /* of one search */
    PATTERN_MAX_STACK_BYTES = 1 << 20, /* of a thread */
    PATTERN_MAX_HEAP_KIB = 64 * 1024,  /* of one search where there is no machine code */
};

struct spec_component;
struct str;
struct pattern;
/* What one thread needs to search; shared by all patterns. */
struct pattern_workspace;

/* Compiles an expression. ERR_INPUT or ERR_UNSUPPORTED with what is wrong and at which byte. */
int pattern_open(const char *expression, struct pattern **ret_pattern, struct error *err);
/* A pattern that finds exactly this text, which is not empty. */
struct pattern *pattern_open_text(const char *text);
/* The pattern of a component, a String or a Regex. Errors name the component. */
int pattern_open_component(const struct spec_component *component, struct pattern **ret_pattern,
                           struct error *err);
void pattern_close(struct pattern *pattern); /* NULL-safe */

struct pattern_workspace *pattern_workspace_open(void);
void pattern_workspace_close(struct pattern_workspace *work); /* NULL-safe */

/* How far a search for all matches of a text has come; begins as {0}. */
struct pattern_walk {
    size_t from, end; /* bytes: where to search on, where the last match ended */
    bool has_found;
};

/* The next match in a well-formed text[0..bytes), as the tokenizers library goes through them: one
 * may be empty, but not where the match before it ended; an empty text has none. Returns 1 and
 * where it is, 0 if there is none any more, or -1 with ERR_LIMIT. Many threads may search with one
 * pattern, each with its own work. */
int pattern_next(const struct pattern *pattern, struct pattern_workspace *work, const char *text,
                 size_t bytes, struct pattern_walk *walk, size_t *ret_begin, size_t *ret_end,
                 struct error *err);

/* Adds the text with each match replaced. */
int pattern_replace(const struct pattern *pattern, struct pattern_workspace *work, const char *text,
                    size_t bytes, const char *replacement, struct str *out, struct error *err);
#endif
