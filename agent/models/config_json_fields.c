/* The fields of each kind's config.json. */
#include "agent/models/config_json_parts.h"

#include "agent/models/config_json.h"
#include "base/str.h"

#include <jansson.h>
#include <string.h>

/* clang-format off */
static const struct json_field rope_fields[] = {
    JSON_CUSTOM("rope_theta", struct rope, theta, config_json_positive),
    JSON_CUSTOM_SAME("rope_type", config_json_rope_type),
    JSON_CUSTOM_SAME("type", config_json_rope_type),
    JSON_CUSTOM("factor", struct rope, factor, config_json_factor),
    JSON_CUSTOM("low_freq_factor", struct rope, low_freq_factor, config_json_positive),
    JSON_CUSTOM("high_freq_factor", struct rope, high_freq_factor, config_json_positive),
    JSON_CUSTOM_SAME("partial_rotary_factor", config_json_one),
    SIZE("original_max_position_embeddings", struct rope, original_max_positions, 1,
         LANGUAGE_MAX_TOKENS),
    JSON_END,
};

const struct json_field config_json_llama[] = {
    COMMON_FIELDS,
    SIZE("vocab_size", struct architecture, llama.vocab_size, 1, INT32_MAX),
    SIZE("hidden_size", struct architecture, llama.hidden_size, 1, LANGUAGE_MAX_WIDTH),
    SIZE("intermediate_size", struct architecture, llama.intermediate_size, 1, LANGUAGE_MAX_WIDTH),
    SIZE("num_hidden_layers", struct architecture, llama.num_hidden_layers, 1, MODULE_MAX_CHILDREN),
    SIZE("num_attention_heads", struct architecture, llama.num_attention_heads, 1, LANGUAGE_MAX_WIDTH),
    SIZE("num_key_value_heads", struct architecture, llama.num_key_value_heads, 1, LANGUAGE_MAX_WIDTH),
    SIZE("head_dim", struct architecture, llama.head_dim, 1, LANGUAGE_MAX_WIDTH),
    SIZE("max_position_embeddings", struct architecture, llama.max_position_embeddings, 1, LANGUAGE_MAX_TOKENS),
    SIZE("sliding_window", struct architecture, llama.sliding_window, 1, LANGUAGE_MAX_TOKENS),
    JSON_CUSTOM("initializer_range", struct architecture, llama.initializer_range, config_json_range),
    JSON_CUSTOM("rms_norm_eps", struct architecture, llama.rms_norm_eps, config_json_range),
    JSON_CUSTOM("rope_theta", struct architecture, llama.rope.theta, config_json_positive),
    JSON_PART("rope_scaling", struct architecture, llama.rope, rope_fields),
    JSON_PART("rope_parameters", struct architecture, llama.rope, rope_fields),
    JSON_BOOL("attention_bias", struct architecture, llama.attention_bias),
    JSON_BOOL("mlp_bias", struct architecture, llama.mlp_bias),
    JSON_BOOL("tie_word_embeddings", struct architecture, llama.tie_word_embeddings),
    JSON_CUSTOM("attention_dropout", struct architecture, llama.attention_dropout, config_json_probability),
    JSON_CUSTOM_SAME("hidden_act", config_json_silu),
    JSON_CUSTOM_SAME("partial_rotary_factor", config_json_one),
    JSON_KNOWN("pretraining_tp"),
    JSON_END,
};

const struct json_field config_json_gpt2[] = {
    COMMON_FIELDS,
    SIZE("vocab_size", struct architecture, gpt2.vocab_size, 1, INT32_MAX),
    SIZE("n_positions", struct architecture, gpt2.n_positions, 1, LANGUAGE_MAX_TOKENS),
    SIZE("n_embd", struct architecture, gpt2.n_embd, 1, LANGUAGE_MAX_WIDTH),
    SIZE("n_layer", struct architecture, gpt2.n_layer, 1, MODULE_MAX_CHILDREN),
    SIZE("n_head", struct architecture, gpt2.n_head, 1, LANGUAGE_MAX_WIDTH),
    SIZE("n_inner", struct architecture, gpt2.n_inner, 1, LANGUAGE_MAX_WIDTH),
    JSON_CUSTOM("activation_function", struct architecture, gpt2.gelu_tanh, config_json_gelu),
    JSON_CUSTOM("layer_norm_epsilon", struct architecture, gpt2.layer_norm_epsilon, config_json_range),
    JSON_CUSTOM("initializer_range", struct architecture, gpt2.initializer_range, config_json_range),
    JSON_CUSTOM("embd_pdrop", struct architecture, gpt2.embd_pdrop, config_json_probability),
    JSON_CUSTOM("attn_pdrop", struct architecture, gpt2.attn_pdrop, config_json_probability),
    JSON_CUSTOM("resid_pdrop", struct architecture, gpt2.resid_pdrop, config_json_probability),
    JSON_BOOL("tie_word_embeddings", struct architecture, gpt2.tie_word_embeddings),
    JSON_CUSTOM_SAME("scale_attn_weights", config_json_true),
    JSON_CUSTOM_SAME("scale_attn_by_inverse_layer_idx", config_json_false),
    JSON_CUSTOM_SAME("add_cross_attention", config_json_false),
    JSON_KNOWN("n_ctx"), JSON_KNOWN("reorder_and_upcast_attn"),
    /* of a head that is not built */
    JSON_KNOWN("summary_activation"), JSON_KNOWN("summary_first_dropout"),
    JSON_KNOWN("summary_proj_to_labels"), JSON_KNOWN("summary_type"),
    JSON_KNOWN("summary_use_proj"),
    JSON_END,
};
/* clang-format on */

/* ---- T5 and BERT ---- */

static void read_feed_forward(struct json_reader *reader, const json_t *value, void *field)
{
    struct architecture *a = field;
    const char *name = json_read_text(reader, value);
    if (!name)
        return;
    for (int kind = 0; kind < T5_FEED_FORWARDS; kind++)
        if (strcmp(name, t5_feed_forward_name(kind)) == 0) {
            a->t5.feed_forward_proj = kind;
            return;
        }
    json_problem(reader, "unsupported \"%.40s\": relu, gated-gelu and gated-silu work", name);
}

static void read_t5_scaling(struct json_reader *reader, const json_t *value, void *field)
{
    struct architecture *a = field;
    if (!json_is_boolean(value))
        json_problem(reader, "must be true or false");
    else
        a->t5.scaling = json_is_true(value) ? T5_SCALES : T5_SCALES_NOT;
}

/* "a,b,c" of {"0": "a", "1": "b", "2": "c"}; NULL if names are missing or have commas. */
static const char *join_labels(struct arena *arena, const json_t *object)
{
    auto_str struct str list;
    str_init(&list, CONFIG_JSON_MAX_BYTES);
    for (size_t i = 0; i < json_object_size(object); i++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", i);
        const char *name = json_string_value(json_object_get(object, id));
        if (!name || !name[0] || strchr(name, ','))
            return NULL;
        str_printf(&list, "%s%s", i ? "," : "", name);
    }
    return arena_strdup(arena, str_text(&list));
}

/* The number of labels is that of their names. */
static void read_labels(struct json_reader *reader, const json_t *value, void *field)
{
    struct architecture *a = field;
    if (!json_is_object(value) || json_object_size(value) == 0)
        json_problem(reader, "must be an object with a name for each label");
    else if (json_object_size(value) > LANGUAGE_MAX_WIDTH)
        json_problem(reader, "more labels than %lld", (long long)LANGUAGE_MAX_WIDTH);
    else {
        a->bert.num_labels = (int64_t)json_object_size(value);
        a->bert.label_names = join_labels(reader->arena, value);
    }
}

static void read_problem_type(struct json_reader *reader, const json_t *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "single_label_classification") != 0)
        json_problem(reader, "unsupported \"%.40s\": single_label_classification works", name);
}

static void read_position_type(struct json_reader *reader, const json_t *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "absolute") != 0)
        json_problem(reader, "unsupported \"%.40s\": absolute works", name);
}

/* clang-format off */
const struct json_field config_json_t5[] = {
    COMMON_FIELDS,
    SIZE("vocab_size", struct architecture, t5.vocab_size, 1, INT32_MAX),
    SIZE("d_model", struct architecture, t5.d_model, 1, LANGUAGE_MAX_WIDTH),
    SIZE("d_kv", struct architecture, t5.d_kv, 1, LANGUAGE_MAX_WIDTH),
    SIZE("d_ff", struct architecture, t5.d_ff, 1, LANGUAGE_MAX_WIDTH),
    SIZE("num_layers", struct architecture, t5.num_layers, 1, MODULE_MAX_CHILDREN),
    SIZE("num_decoder_layers", struct architecture, t5.num_decoder_layers, 1, MODULE_MAX_CHILDREN),
    SIZE("num_heads", struct architecture, t5.num_heads, 1, LANGUAGE_MAX_WIDTH),
    SIZE("relative_attention_num_buckets", struct architecture, t5.relative_attention_num_buckets, 1, LANGUAGE_MAX_WIDTH),
    SIZE("relative_attention_max_distance", struct architecture, t5.relative_attention_max_distance, 1, LANGUAGE_MAX_TOKENS),
    SIZE("decoder_start_token_id", struct architecture, t5.decoder_start_token_id, 0, INT32_MAX),
    JSON_CUSTOM("dropout_rate", struct architecture, t5.dropout_rate, config_json_probability),
    JSON_CUSTOM("layer_norm_epsilon", struct architecture, t5.layer_norm_epsilon, config_json_range),
    JSON_CUSTOM("initializer_factor", struct architecture, t5.initializer_factor, config_json_range),
    JSON_CUSTOM_SAME("feed_forward_proj", read_feed_forward),
    JSON_BOOL("tie_word_embeddings", struct architecture, t5.tie_word_embeddings),
    JSON_CUSTOM_SAME("scale_decoder_outputs", read_t5_scaling),
    JSON_CUSTOM_SAME("is_encoder_decoder", config_json_true),
    JSON_CUSTOM_SAME("is_decoder", config_json_false),
    /* what follows from feed_forward_proj; how far the first T5 was trained, which limits nothing */
    JSON_KNOWN("dense_act_fn"), JSON_KNOWN("is_gated_act"), JSON_KNOWN("n_positions"),
    JSON_KNOWN("output_past"), JSON_KNOWN("classifier_dropout"),
    JSON_END,
};

const struct json_field config_json_bert[] = {
    COMMON_FIELDS,
    SIZE("vocab_size", struct architecture, bert.vocab_size, 1, INT32_MAX),
    SIZE("hidden_size", struct architecture, bert.hidden_size, 1, LANGUAGE_MAX_WIDTH),
    SIZE("num_hidden_layers", struct architecture, bert.num_hidden_layers, 1, MODULE_MAX_CHILDREN),
    SIZE("num_attention_heads", struct architecture, bert.num_attention_heads, 1, LANGUAGE_MAX_WIDTH),
    SIZE("intermediate_size", struct architecture, bert.intermediate_size, 1, LANGUAGE_MAX_WIDTH),
    SIZE("max_position_embeddings", struct architecture, bert.max_position_embeddings, 1, LANGUAGE_MAX_TOKENS),
    SIZE("type_vocab_size", struct architecture, bert.type_vocab_size, 1, INT32_MAX),
    SIZE("num_labels", struct architecture, bert.num_labels, 1, LANGUAGE_MAX_WIDTH),
    JSON_CUSTOM_SAME("id2label", read_labels),
    JSON_CUSTOM("hidden_act", struct architecture, bert.gelu_tanh, config_json_gelu),
    JSON_CUSTOM("hidden_dropout_prob", struct architecture, bert.hidden_dropout_prob, config_json_probability),
    JSON_CUSTOM("attention_probs_dropout_prob", struct architecture, bert.attention_probs_dropout_prob, config_json_probability),
    JSON_CUSTOM("classifier_dropout", struct architecture, bert.classifier_dropout, config_json_probability),
    JSON_CUSTOM("initializer_range", struct architecture, bert.initializer_range, config_json_range),
    JSON_CUSTOM("layer_norm_eps", struct architecture, bert.layer_norm_eps, config_json_range),
    JSON_CUSTOM_SAME("position_embedding_type", read_position_type),
    JSON_CUSTOM_SAME("problem_type", read_problem_type),
    JSON_CUSTOM_SAME("tie_word_embeddings", config_json_true),
    JSON_CUSTOM_SAME("is_decoder", config_json_false),
    JSON_CUSTOM_SAME("add_cross_attention", config_json_false),
    JSON_KNOWN("label2id"), JSON_KNOWN("gradient_checkpointing"), JSON_KNOWN("finetuning_task"),
    /* of the multilingual models' files; nothing reads them */
    JSON_KNOWN("directionality"), JSON_KNOWN("pooler_fc_size"), JSON_KNOWN("pooler_type"),
    JSON_KNOWN("pooler_num_attention_heads"), JSON_KNOWN("pooler_num_fc_layers"),
    JSON_KNOWN("pooler_size_per_head"),
    JSON_END,
};
/* clang-format on */
