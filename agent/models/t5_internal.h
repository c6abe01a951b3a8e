/* Private to T5: t5.c runs it, t5_modules.c declares its modules. */
#ifndef SHOAL_AGENT_MODELS_T5_INTERNAL_H
#define SHOAL_AGENT_MODELS_T5_INTERNAL_H

#include "agent/models/t5.h"
#include "agent/models/t5_bias.h"
#include "agent/nn/nn.h"

/* What every sub-layer is: x + dropout(work(norm(x))). */
struct t5_sublayer {
    struct module *module, *norm, *dropout;
    uint64_t number; /* names the random numbers of its output; the next one those within */
};

struct t5_attention {
    struct t5_sublayer layer;
    struct module *module, *q, *k, *v, *o;
};

struct t5_ff {
    struct t5_sublayer layer;
    struct module *module, *wi, *wi_1, *wo, *dropout; /* wi_1: gated, wi being wi_0 */
};

struct t5_block {
    struct t5 *t5;
    struct module *module;
    bool in_decoder;
    struct t5_attention self, cross; /* cross: of the decoder */
    struct t5_ff feed_forward;
};

struct t5_stack {
    struct module *module, *bias, *norm, *dropout;
    struct t5_block *blocks;
    int64_t L;
    uint64_t embedding_number, output_number; /* of their dropouts */
    struct t5_buckets buckets;
};

struct t5 {
    struct model model; /* first: forward() gets a pointer to it */
    struct arena *arena;
    struct t5_config config;
    struct nn_heads heads;
    struct module *shared, *head;
    struct t5_stack encoder, decoder;
    uint64_t next_index, next_number; /* while it is declared */
    const int32_t *source_counts;     /* of the pass */
};

/* Declares the modules and fills in where they are. arena and config are set. */
void t5_declare(struct t5 *net);
#endif
