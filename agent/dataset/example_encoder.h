/* One row of a data set to ids, on any thread. */
#ifndef SHOAL_AGENT_DATASET_EXAMPLE_ENCODER_H
#define SHOAL_AGENT_DATASET_EXAMPLE_ENCODER_H

#include "agent/dataset/columns.h"
#include "agent/dataset/encode_ring.h"
#include "agent/dataset/examples.h"

enum { EXAMPLE_SENTENCE_END = -1 };

/* What a job's ids begin with: counts[0], counts[1] and label of struct example. The ids follow; of
 * PRETRAINING, counts[0] is of all sentences, each followed by EXAMPLE_SENTENCE_END. */
enum { EXAMPLE_FIRST, EXAMPLE_SECOND, EXAMPLE_LABEL, EXAMPLE_HEAD };

struct example_encoder {
    const struct examples_options *options;
    struct columns columns;
    bool add_bos, add_eos;
    char **label_names; /* [label_count] */
    size_t label_count;
};

/* The options must outlive the encoder; `name` is the data's, for errors: ERR_CONFIG without a
 * tokenizer or what it must have, or for label names that do not fit the classes; ERR_UNSUPPORTED
 * for a format without such columns. example_encoder_free after failure too. */
int example_encoder_init(struct example_encoder *encoder, const struct examples_options *options,
                         enum token_format format, const char *name, struct error *err);
void example_encoder_free(struct example_encoder *encoder);

/* An encode_function; ctx: a struct example_encoder. What is wrong with a row is `failed`. */
void example_encode(void *ctx, struct encode_job *job);
#endif
