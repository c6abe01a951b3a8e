/* A tokenizer as the data sets see it. */
#ifndef SHOAL_AGENT_BATCHES_ENCODER_H
#define SHOAL_AGENT_BATCHES_ENCODER_H

#include "agent/dataset/token_source.h"
#include "agent/text/tokenizer.h"
#include "base/error.h"

/* "auto" for bos and eos is what the tokenizer itself puts around a text. tokenizer: used as long
 * as the encoder. Errors: those of tokenizer_encode(). */
int token_encoder_init(struct tokenizer *tokenizer, struct token_encoder *ret_encoder,
                       struct error *err);
#endif
