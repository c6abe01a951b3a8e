/* From a row of a text file to its ids: what is taken from the row, and what is put around it. */
#ifndef SHOAL_AGENT_DATASET_ROW_ENCODER_H
#define SHOAL_AGENT_DATASET_ROW_ENCODER_H

#include "agent/dataset/encode_ring.h"
#include "agent/dataset/token_source.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct row_encoder {
    struct token_encoder tokenizer;
    bool is_json;
    const char *text_column;
    bool add_bos, add_eos;
    int64_t vocab_size; /* 0: any */
};

/* Before other threads. Decides what "auto" means. The options' strings must outlive the encoder;
 * `name` is the data's, for errors: ERR_CONFIG without a tokenizer, or without an id that is asked
 * for. */
int row_encoder_init(struct row_encoder *encoder, enum token_format format,
                     const struct token_options *options, const char *name, struct error *err);

/* An encode_function; ctx: a struct row_encoder. */
void row_encode(void *ctx, struct encode_job *job);
#endif
