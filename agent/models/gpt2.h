/* GPT-2 (Radford et al. 2019): parameters, modules and the printed tree are those of transformers'
 * GPT2LMHeadModel. */
#ifndef SHOAL_AGENT_MODELS_GPT2_H
#define SHOAL_AGENT_MODELS_GPT2_H

#include "agent/models/model.h"

/* The fields of config.json, by its names. */
struct gpt2_config {
    int64_t vocab_size;
    int64_t n_positions;
    int64_t n_embd;
    int64_t n_layer;
    int64_t n_head;
    int64_t n_inner; /* 0: 4 n_embd */
    bool gelu_tanh;  /* activation_function "gelu_new"; false: "gelu" */
    double layer_norm_epsilon;
    double initializer_range;
    double embd_pdrop, attn_pdrop, resid_pdrop;
    bool tie_word_embeddings;
    int64_t loss_chunk_rows; /* tokens whose logits are alive at once; 0: language_chunk_rows() */
};
extern const struct gpt2_config gpt2_default_config; /* the small one, 124M */

int64_t gpt2_inner(const struct gpt2_config *config); /* the number that 0 stands for */

/* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
int gpt2_check(const struct gpt2_config *config, struct error *err);

/* All memory from `arena`. config: passed gpt2_check(). */
struct model *model_gpt2_new(struct arena *arena, const struct gpt2_config *config);
#endif
