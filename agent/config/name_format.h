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

/* Checks that `format` is text and fields of these names, and makes no path. A field is {name}; or,
 * for a number padded with zeros to N <= 20 digits, {name:0N} or {name:0Nd}. Errors: ERR_CONFIG
 * naming what it does not know. */
int name_format_check(const char *format, const char *const *names, size_t count,
                      struct error *err);

/* Writes the name into out. format: passed name_format_check(); what does not fit is cut. */
void name_format(const char *format, const struct name_field *fields, size_t count, char *out,
                 size_t out_bytes);
#endif
