/* Names with fields in braces, as Python's str.format has them: "{prefix}-{step}steps",
 * "e-{epoch:03d}". Pure. */
#ifndef SHOAL_AGENT_CONFIG_NAME_FORMAT_H
#define SHOAL_AGENT_CONFIG_NAME_FORMAT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct name_field {
    const char *name;
    const char *text; /* NULL: it is a number */
    int64_t number;
};

/* Checks that `format` is text and fields {name} or {name:0N}, {name:0Nd} (numbers, filled up with
 * zeros to N <= 20 digits) of these names, and makes no path. Errors: ERR_CONFIG naming what it
 * does not know. */
int name_format_check(const char *format, const char *const *names, size_t count,
                      struct error *err);

/* Writes the name into out. format: passed name_format_check(); what does not fit is cut. */
void name_format(const char *format, const struct name_field *fields, size_t count, char *out,
                 size_t out_bytes);
#endif
