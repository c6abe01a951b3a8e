/* What is behind a token_source: one of these per family of formats (token_index.h for files of
 * ids, token_stream.h for text). Tells and seeks positions, knows nothing of names and splits. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_READER_H
#define SHOAL_AGENT_DATASET_TOKEN_READER_H

#include "agent/dataset/token_position.h"
#include "agent/dataset/token_source.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token_reader {
    int64_t samples; /* per epoch; -1: not known */
    /* As the functions of token_source.h. tell fills all but the fingerprint; seek gets a position
     * whose fingerprint is right. */
    int (*set_epoch)(struct token_reader *reader, int64_t epoch, struct error *err);
    int (*next)(struct token_reader *reader, int32_t *ids, int32_t *targets, bool *ret_end,
                struct error *err);
    int (*skip)(struct token_reader *reader, int64_t count, int64_t *ret_skipped,
                struct error *err);
    void (*tell)(const struct token_reader *reader, struct token_position *ret_position);
    int (*seek)(struct token_reader *reader, const struct token_position *position,
                struct error *err);
    void (*bad_lines)(struct token_reader *reader, struct token_bad_lines *ret_lines);
    void (*activity)(struct token_reader *reader, char *out, size_t out_bytes);
    void (*close)(struct token_reader *reader);
};
#endif
