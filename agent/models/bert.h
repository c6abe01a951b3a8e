/* BERT (Devlin et al. 2019) with one of its heads: parameters, modules and the printed tree are
 * those of transformers' BertForMaskedLM, BertForPreTraining and BertForSequenceClassification. */
#ifndef SHOAL_AGENT_MODELS_BERT_H
#define SHOAL_AGENT_MODELS_BERT_H

#include "agent/models/model.h"

enum bert_head {
    BERT_MASKED_LM,
    BERT_PRETRAINING, /* masked LM, and whether the second sentence is the next */
    BERT_CLASSIFICATION,
    BERT_HEADS,
};
const char *bert_class_name(enum bert_head head); /* "BertForMaskedLM", .. */

/* The fields of config.json, by its names, in its units. */
struct bert_config {
    enum bert_head head;
    int64_t vocab_size;
    int64_t hidden_size; /* even */
    int64_t num_hidden_layers;
    int64_t num_attention_heads; /* divides hidden_size */
    int64_t intermediate_size;
    bool gelu_tanh; /* hidden_act "gelu_new", else "gelu" */
    double hidden_dropout_prob;
    double attention_probs_dropout_prob;
    double classifier_dropout; /* below 0: hidden_dropout_prob */
    int64_t max_position_embeddings;
    int64_t type_vocab_size;
    double initializer_range;
    double layer_norm_eps;
    int64_t num_labels;      /* of BERT_CLASSIFICATION: 2 or more */
    const char *label_names; /* id2label: in their order, separated by commas; NULL: none */
    int64_t loss_chunk_rows; /* tokens whose logits are alive at once; 0: language_chunk_rows() */
};
extern const struct bert_config bert_default_config; /* transformers': bert-base-uncased's sizes */

/* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
int bert_check(const struct bert_config *config, struct error *err);

/* All memory from `arena`. config: passed bert_check(). pad_id: the tokenizer's
 * padding; -1: none. */
struct model *model_bert_new(struct arena *arena, const struct bert_config *config, int64_t pad_id);
#endif
