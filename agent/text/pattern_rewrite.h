/* From Oniguruma's regular expressions, in which tokenizer files are written, to PCRE2's. What the
 * two read differently is said in PCRE2's way, or refused with its place. */
#ifndef SHOAL_AGENT_TEXT_PATTERN_REWRITE_H
#define SHOAL_AGENT_TEXT_PATTERN_REWRITE_H

#include "base/error.h"

struct str;

enum {
    PATTERN_MAX_GROWTH = 48, /* bytes that one byte of an expression may become */
    PATTERN_MAX_GROUPS = 200 /* within one another; PCRE2's own limit is 250 */
};

/* Adds the expression, well-formed UTF-8, for PCRE2 with UTF, UCP and MULTILINE. ERR_INPUT or
 * ERR_UNSUPPORTED with what is wrong and at which byte. */
int pattern_rewrite(const char *expression, struct str *out, struct error *err);
#endif
