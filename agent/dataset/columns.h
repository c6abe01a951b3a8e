/* The columns of a row: a line of JSON, a line of TSV (fields between tabs, nothing is quoted), or
 * a record of CSV (RFC 4180). A line of plain text is one column. TSV and CSV begin with the
 * columns' names. Knows no files. Many threads may parse, each with its own row. */
#ifndef SHOAL_AGENT_DATASET_COLUMNS_H
#define SHOAL_AGENT_DATASET_COLUMNS_H

#include "agent/dataset/json_line.h"
#include "agent/dataset/token_source.h"
#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum { COLUMNS_MAX = 3 };

struct columns {
    enum token_format format;                  /* JSONL, TEXT, TSV or CSV */
    struct json_line_text wanted[COLUMNS_MAX]; /* names and keys */
    size_t count;
    size_t fields[COLUMNS_MAX]; /* TSV, CSV: which field, from 0 on ... */
    size_t field_count;         /* ... of so many, that each row has */
};

/* TSV, CSV: reads the line of names. ERR_INPUT if a wanted one is not there. */
int columns_read_names(struct columns *columns, const char *line, size_t bytes, struct error *err);

/* CSV: whether a quote is open behind the line, given whether one was before it: the record then
 * goes on in the next line. */
bool columns_is_open(const char *line, size_t bytes, bool before);

/* A row's texts. All zero before the first; used again for later ones. */
struct columns_row {
    struct json_line_text texts[COLUMNS_MAX]; /* [columns->count] */
    struct json *json;                        /* what they live in, or */
    struct str unquoted[COLUMNS_MAX];
};

/* The texts live until the next call, as the record does. ERR_INPUT: what is missing or wrong. */
int columns_parse(const struct columns *columns, const char *record, size_t bytes,
                  struct columns_row *row, struct error *err);
void columns_row_free(struct columns_row *row);
#endif
