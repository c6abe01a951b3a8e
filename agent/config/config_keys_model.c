/* The keys of the model. */
#include "agent/config/config_keys.h"

#include "agent/models/families.h"
#include "agent/models/model.h"

#define OVERRIDE_INT(name, others, high, help)                                                     \
    KEY_INT("model.config_overrides", #name, overrides.name, "0", 0, high, others, help,           \
            .needs = {NEED_LANGUAGE})
#define OVERRIDE_FLOAT(name, others, high, help)                                                   \
    KEY_FLOAT("model.config_overrides", #name, overrides.name, "-1", -1, high, others, help,       \
              .needs = {NEED_LANGUAGE})
#define OVERRIDE_TOKEN(name)                                                                       \
    KEY_INT("model.config_overrides", #name, overrides.name, "-1", -1, 1e9, NULL,                  \
            "token number; -1: config.json's", .needs = {NEED_LANGUAGE})

/* Values of model.type: places in the table of families, where mnist_cnn is the first. */
#define COMMA                                ,
#define FAMILY_VALUE(name, spellings, block) FAMILY_##name
#define FAMILY_CHOICE(name, spellings, block)                                                      \
    {                                                                                              \
        spellings, FAMILY_##name                                                                   \
    }
#define TASK_CHOICE(task, head)                                                                    \
    {                                                                                              \
        head, task                                                                                 \
    }
enum { FAMILY_mnist_cnn, LANGUAGE_FAMILIES(FAMILY_VALUE, COMMA) };

static const struct config_key keys[] = {
    KEY_TEXT(
        "model", "name_or_path", model.name_or_path, "",
        "model_id model_name model_name_or_path pretrained_model_name_or_path",
        "a directory with config.json, or a Hugging Face id of the local caches (HF_HUB_CACHE, HF_HOME)",
        .is_path = true, .needs = {NEED_LANGUAGE}),
    KEY_CHOICE("model", "type", model.type, "auto",
               CHOICES({"auto", MODEL_AUTO}, {"mnist_cnn", FAMILY_mnist_cnn},
                       LANGUAGE_FAMILIES(FAMILY_CHOICE, COMMA)),
               "model_type",
               "architecture; auto: config.json's, or mnist_cnn where no model is named"),
    KEY_CHOICE(
        "model", "init", model.init, "auto",
        CHOICES({"auto", INIT_AUTO}, {"random", INIT_RANDOM}, {"pretrained", INIT_PRETRAINED}),
        NULL, "where initial values come from; auto: the model's weights if it has any"),
    KEY_TEXT(
        "model", "init_weights", model.init_weights, "", "initial_weights_checkpoint",
        "initial values from this checkpoint or directory of weights; nothing else is taken from it",
        .is_path = true),
    KEY_TEXT("model", "architecture", model.architecture, "", NULL,
             "published sizes by name, llama3_2_1b or gpt2 (a preset of that name sets it); empty: "
             "config.json's, or those of config_overrides",
             .needs = {NEED_LANGUAGE}),
    KEY_CHOICE(
        "model", "head", model.head, "auto",
        CHOICES({"auto", HEAD_AUTO}, MODEL_TASKS(TASK_CHOICE, COMMA)), NULL,
        "what is learned; auto: config.json's, or the only one of the type. pretraining: masked words "
        "and next sentences (BERT)"),
    KEY_FLOAT("model", "dropout", model.dropout, "-1", -1, 0.99, NULL,
              "probability for every dropout layer; below 0: each layer's own"),
    KEY_CHOICE(
        "model", "loss_reduction", model.loss_reduction, "mean",
        CHOICES({"sum", LOSS_SUM}, {"mean", LOSS_MEAN}), NULL,
        "mean: over what all ranks are asked to predict, so that the layout does not change it; "
        "sum: over a rank's batch, gradients averaged over ranks (the FSDP tutorial)"),

    OVERRIDE_INT(vocab_size, NULL, 1e8, "tokens the model knows; 0 here and below: config.json's"),
    OVERRIDE_INT(hidden_size, "hidden_width n_embd d_model", 1e6, "width of a token's vector"),
    OVERRIDE_INT(intermediate_size, "n_inner d_ff", 1e7, "width within the feed-forward part"),
    OVERRIDE_INT(num_hidden_layers, "num_layers n_layer", 1e4,
                 "blocks; of T5 in each of its halves"),
    OVERRIDE_INT(num_attention_heads, "num_heads n_head", 1e4, "query heads"),
    OVERRIDE_INT(num_key_value_heads, NULL, 1e4,
                 "key and value heads; 0 and no config.json: as query heads"),
    OVERRIDE_INT(head_dim, "d_kv", 1e5,
                 "width of a head; 0 and no config.json: hidden_size / heads"),
    OVERRIDE_INT(max_position_embeddings, "n_positions n_ctx", 1e8, "longest sequence"),
    OVERRIDE_FLOAT(rms_norm_eps, NULL, 1,
                   "Llama's and T5's norms; below 0 here and below: config.json's"),
    OVERRIDE_FLOAT(layer_norm_epsilon, "layer_norm_eps", 1, "GPT-2's, T5's and BERT's norms"),
    OVERRIDE_FLOAT(rope_theta, "rotary_emb_base", 1e12, "base of the rotary positions"),
    OVERRIDE_FLOAT(initializer_range, NULL, 10, "standard deviation of random initial values"),
    KEY_CHOICE("model.config_overrides", "tie_word_embeddings", overrides.tie_word_embeddings,
               "auto",
               CHOICES({"auto", CHOOSE_AUTO}, {"true=1=yes=on", CHOOSE_YES},
                       {"false=0=no=off", CHOOSE_NO}),
               NULL, "the head is the embedding; auto: config.json's", .implied = "true",
               .needs = {NEED_LANGUAGE}),
    OVERRIDE_FLOAT(resid_pdrop, NULL, 0.99, "GPT-2: dropout before a residual is added"),
    OVERRIDE_FLOAT(embd_pdrop, NULL, 0.99, "GPT-2: dropout of embeddings"),
    OVERRIDE_FLOAT(attn_pdrop, "attention_dropout", 0.99, "GPT-2: dropout of attention's weights"),
    OVERRIDE_TOKEN(bos_token_id),
    OVERRIDE_TOKEN(eos_token_id),
    OVERRIDE_TOKEN(pad_token_id),
    OVERRIDE_INT(num_labels, NULL, 1e6, "BERT's sequence classification: classes"),

    KEY_CHOICE("model.rope_scaling", "rope_type", rope.type, "config",
               CHOICES({"config", ROPE_OF_CONFIG}, {"default=none", ROPE_DEFAULT},
                       {"linear", ROPE_LINEAR}, {"dynamic", ROPE_DYNAMIC}, {"llama3", ROPE_LLAMA3}),
               NULL, "how rotary positions are stretched; config: as config.json says",
               .needs = {NEED_LANGUAGE}),
    KEY_FLOAT("model.rope_scaling", "factor", rope.factor, "0", 0, 1e6, NULL,
              "linear, dynamic, llama3: by how much",
              .needs = {NEED_STRETCHED_ROPE, NEED_LANGUAGE}),
    KEY_FLOAT("model.rope_scaling", "low_freq_factor", rope.low_freq_factor, "0", 0, 1e6, NULL,
              "llama3", .needs = {NEED_LLAMA3_ROPE, NEED_LANGUAGE}),
    KEY_FLOAT("model.rope_scaling", "high_freq_factor", rope.high_freq_factor, "0", 0, 1e6, NULL,
              "llama3", .needs = {NEED_LLAMA3_ROPE, NEED_LANGUAGE}),
    KEY_INT("model.rope_scaling", "original_max_position_embeddings",
            rope.original_max_position_embeddings, "0", 0, 1e9, NULL, "llama3",
            .needs = {NEED_LLAMA3_ROPE, NEED_LANGUAGE}),
};

const struct config_table config_table_model = {keys, sizeof keys / sizeof keys[0], RANKS_MATCH};
