/* Whether a text is JSON, and strictly so (RFC 8259): the grammar, UTF-8, how deep it is nested.
 * What it lets through, cJSON's parser takes without a doubt. For base/json_parse.c alone. */
#ifndef SHOAL_BASE_JSON_SCAN_H
#define SHOAL_BASE_JSON_SCAN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* What is in the text, so far as its reader must know. */
struct json_census {
    size_t numbers;
    size_t nans;  /* NaN, Infinity, -Infinity; only if they are allowed, as this: */
    bool has_nul; /* \u0000 in a string */
};

/* `allow` is a set of enum json_allow; duplicates are not looked for. ERR_INPUT with line, column
 * and reason. */
int json_scan(const char *text, size_t bytes, unsigned allow, struct json_census *ret_census,
              struct error *err);
/* Sets the error that the key is a duplicate. The text is JSON; its keys are counted from 0 as they
 * come. */
void json_scan_duplicate(const char *text, size_t bytes, size_t key, struct error *err);
#endif
