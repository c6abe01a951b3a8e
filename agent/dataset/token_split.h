/* What is asked for of a data set: "train", "validation[:1000]", "train[90%:]", as in Hugging
 * Face's datasets. Pure. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_SPLIT_H
#define SHOAL_AGENT_DATASET_TOKEN_SPLIT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { TOKEN_SPLIT_NAME_BYTES = 64, TOKEN_SPLIT_MAX_NAMES = 8 };

struct token_bound {
    bool set, percent; /* not set: the first (last) row */
    int64_t value;     /* rows, or 0 to 100 */
};

struct token_split {
    char name[TOKEN_SPLIT_NAME_BYTES];
    struct token_bound begin, end; /* rows begin .. end - 1 */
    int64_t max_rows;              /* of those; 0: all */
};

/* Errors: ERR_CONFIG quoting the text and the forms there are. */
int token_split_parse(const char *text, int64_t max_rows, struct token_split *ret_split,
                      struct error *err);

/* The names to look for, the one asked for first; returns how many. */
int token_split_names(const struct token_split *split, const char *names[TOKEN_SPLIT_MAX_NAMES]);

bool token_split_is_whole(const struct token_split *split);    /* no bounds, no max_rows */
bool token_split_needs_count(const struct token_split *split); /* percents: of how many rows? */

/* The rows *ret_first .. *ret_end - 1 of `rows` (INT64_MAX: not known, for splits that need no
 * count). Percents are rounded to the nearest row, of two to the even one. May be none. */
void token_split_rows(const struct token_split *split, int64_t rows, int64_t *ret_first,
                      int64_t *ret_end);
#endif
