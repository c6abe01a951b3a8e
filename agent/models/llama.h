/* Llama 2, 3, 3.1 and 3.2, and Mistral, which has the same layers (Touvron et al. 2023, Grattafiori
 * et al. 2024, Jiang et al. 2023): parameters, modules and the printed tree are those of
 * transformers' LlamaForCausalLM. */
#ifndef SHOAL_AGENT_MODELS_LLAMA_H
#define SHOAL_AGENT_MODELS_LLAMA_H

#include "agent/models/model.h"
#include "agent/models/rope.h"

/* The fields of config.json, by its names, in its units. */
struct llama_config {
    const char *family; /* "Llama" or "Mistral": what the classes' names begin with */
    int64_t vocab_size;
    int64_t hidden_size;
    int64_t intermediate_size;
    int64_t num_hidden_layers;
    int64_t num_attention_heads;
    int64_t num_key_value_heads; /* 0: num_attention_heads; else divides them */
    int64_t head_dim;            /* 0: hidden_size / num_attention_heads; even */
    int64_t max_position_embeddings;
    double initializer_range;
    double rms_norm_eps;
    struct rope rope;
    bool attention_bias; /* q_proj, k_proj, v_proj and o_proj have one */
    bool mlp_bias;
    double attention_dropout; /* of the probabilities */
    int64_t sliding_window;   /* tokens that a token sees, so that longer sequences are refused; 0:
                                 all */
    bool tie_word_embeddings; /* the head is the embedding */
    int64_t loss_chunk_rows;  /* tokens whose logits are alive at once; 0: language_chunk_rows() */
};
extern const struct llama_config llama_default_config; /* transformers': Llama-2-7B's sizes */

/* The numbers that 0 stands for. */
int64_t llama_kv_heads(const struct llama_config *config);
int64_t llama_head_dim(const struct llama_config *config);

/* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
int llama_check(const struct llama_config *config, struct error *err);

/* All memory from `arena`. config: passed llama_check(). pad_id: the token whose embedding starts
 * as 0 and does not learn as an input (Mistral's too); -1: none. */
struct model *model_llama_new(struct arena *arena, const struct llama_config *config,
                              int64_t pad_id);
#endif
