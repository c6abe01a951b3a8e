/* T5 and T5 v1.1 (Raffel et al. 2020): parameters, modules and the printed tree are those of
 * transformers' T5ForConditionalGeneration. */
#ifndef SHOAL_AGENT_MODELS_T5_H
#define SHOAL_AGENT_MODELS_T5_H

#include "agent/models/model.h"

enum t5_feed_forward { T5_RELU, T5_GATED_GELU, T5_GATED_SILU, T5_FEED_FORWARDS };
const char *t5_feed_forward_name(enum t5_feed_forward kind); /* "relu", "gated-gelu", .. */

/* Whether what the decoder gives is multiplied by 1 / sqrt(d_model) before the head. Older files
 * do not say so: it is if the head is tied. */
enum t5_scaling { T5_SCALES_IF_TIED, T5_SCALES, T5_SCALES_NOT };

/* The fields of config.json, by its names, in its units. */
struct t5_config {
    int64_t vocab_size;
    int64_t d_model;
    int64_t d_kv; /* of a head: d_model need not be num_heads * d_kv */
    int64_t d_ff;
    int64_t num_layers;
    int64_t num_decoder_layers; /* 0: num_layers */
    int64_t num_heads;
    int64_t relative_attention_num_buckets; /* a multiple of 4 */
    int64_t relative_attention_max_distance;
    double dropout_rate;
    double layer_norm_epsilon;
    double initializer_factor;
    enum t5_feed_forward feed_forward_proj;
    bool tie_word_embeddings;       /* the head is the embedding */
    enum t5_scaling scaling;        /* scale_decoder_outputs */
    int64_t decoder_start_token_id; /* what the decoder reads first */
    int64_t loss_chunk_rows; /* tokens whose logits are alive at once; 0: language_chunk_rows() */
};
extern const struct t5_config t5_default_config; /* transformers': t5-small's sizes */

/* The number that 0 stands for, and what scaling comes to. */
int64_t t5_decoder_layers(const struct t5_config *config);
bool t5_scales(const struct t5_config *config);

/* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
int t5_check(const struct t5_config *config, struct error *err);

/* Which row of the table a key `distance` tokens behind its query (before it: negative) gets:
 * distances are exact up to a quarter of the buckets, then ever coarser up to max_distance.
 * bidirectional: half of the buckets are for keys behind; else those count as distance 0. */
int32_t t5_bucket(int64_t distance, bool bidirectional, int64_t buckets, int64_t max_distance);

/* All memory from `arena`. config: passed t5_check(). pad_id: the tokenizer's padding. */
struct model *model_t5_new(struct arena *arena, const struct t5_config *config, int64_t pad_id);
#endif
