/* One line of a .jsonl file: an object, of which some texts are wanted. Many threads may. */
#ifndef SHOAL_AGENT_DATASET_JSON_LINE_H
#define SHOAL_AGENT_DATASET_JSON_LINE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct json;

struct json_line_text {
    const char *column; /* the field's name */
    const char *key;    /* of the configuration, which names it: for errors */
    bool may_be_number; /* a whole number counts as its digits, true and false as 1 and 0 */
    const char *text;   /* UTF-8; lives as long as what json_line_texts returns */
    size_t bytes;
    char digits[24]; /* text, of a number */
};

/* Fills in the texts of the columns. What is returned is for json_line_free. NULL with ERR_INPUT:
 * no JSON object, or without such a text. */
struct json *json_line_texts(const char *line, size_t bytes, struct json_line_text *texts,
                             size_t count, struct error *err);
/* The same for one column, data.text_column. */
struct json *json_line_text(const char *line, size_t bytes, const char *column,
                            const char **ret_text, size_t *ret_bytes, struct error *err);
void json_line_free(struct json *line);
#endif
