/* Private to BERT: bert.c runs it, bert_modules.c declares its modules. */
#ifndef SHOAL_AGENT_MODELS_BERT_INTERNAL_H
#define SHOAL_AGENT_MODELS_BERT_INTERNAL_H

#include "agent/models/bert.h"
#include "agent/nn/nn.h"

/* The modules of one layer, and where embeddings end: x = norm(x + dropout(dense(y))). */
struct bert_output {
    struct module *module, *dense, *norm, *dropout;
};

struct bert_layer {
    struct bert *bert;
    uint64_t number; /* the first of the numbers that name its random numbers */
    struct module *module, *attention, *self, *query, *key, *value, *intermediate,
        *intermediate_dense;
    struct bert_output attention_output, output;
};
enum { BERT_DROPOUTS = 3 }; /* of a layer: attention's probabilities, its output, the last output */

struct bert {
    struct model model; /* first: forward() gets a pointer to it */
    struct arena *arena;
    struct bert_config config;
    struct nn_heads heads;
    struct module *inner, *embeddings, *words, *positions, *token_types, *norm, *dropout;
    struct module *encoder, *pooler, *pooler_dense;
    struct module *cls, *predictions, *transform, *transform_dense, *transform_norm, *decoder;
    struct module *labels, *labels_dropout; /* seq_relationship or classifier */
    struct bert_layer *layers;
    int32_t *counts;             /* 0, 1, .. max_position_embeddings - 1, then as many zeros */
    const int32_t *token_counts; /* of the pass */
    uint64_t next_index;         /* while it is declared */
};

/* Declares the modules and fills in where they are; gives the root. arena and config are set. */
struct module *bert_declare(struct bert *net, int64_t pad_id);
#endif
