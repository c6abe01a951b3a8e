/* The rows of text files, lines of .jsonl or paragraphs of .txt, in the order of an epoch. Rows are
 * read in blocks, and a block is shuffled in memory: its order is a pure function of seed, epoch
 * and block, so that going on in the middle needs only the block's beginning. With shuffling the
 * files are permuted too, unless a part of the rows was asked for: then they are
 * counted in order. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_ROWS_H
#define SHOAL_AGENT_DATASET_TOKEN_ROWS_H

#include "agent/dataset/token_position.h"
#include "agent/dataset/token_split.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* A paragraph that is longer ends after the line that makes it so. */
    TOKEN_ROWS_PARAGRAPH_BYTES = 1 << 20,
};

struct token_rows_options {
    const char *const *paths; /* [count]; must outlive the rows, as the split must */
    int count;
    bool paragraphs; /* else lines; blank ones are no rows */
    bool shuffle;
    int64_t block_rows; /* >= 1 */
    uint64_t seed;
    const struct token_split *split;
};

struct token_row {
    const char *text; /* valid until the next call */
    size_t bytes;
    const char *path;
    int64_t line; /* its first */
    bool too_long;
    struct token_position position; /* of the row: block, file, offset, line, row, document */
};

struct token_rows;

/* Counts the rows first if the split has percents, which reads everything. */
int token_rows_open(const struct token_rows_options *options, struct token_rows **ret_rows,
                    struct error *err);
void token_rows_close(struct token_rows *rows); /* NULL-safe */

/* Seeks to the row at a position (fields as in struct token_row) of an epoch; all 0: the first. */
int token_rows_seek(struct token_rows *rows, const struct token_position *position,
                    struct error *err);

/* *ret_end: the epoch has no row left. */
int token_rows_next(struct token_rows *rows, struct token_row *ret_row, bool *ret_end,
                    struct error *err);
#endif
