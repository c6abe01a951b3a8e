/* T5: fields of config.json and published sizes (agent/models/families.h). */
#include "agent/models/config_json_values.h"
#include "agent/models/config_json_write.h"
#include "agent/models/families.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

static const struct row {
    const char *name;
    int64_t d_model, d_kv, d_ff, L, heads;
    bool v1_1; /* gated, and with a head of its own */
} rows[] = {
    /* clang-format off */
    {"t5_small",       512,  64,  2048,  6,  8,   false},
    {"t5_base",        768,  64,  3072,  12, 12,  false},
    {"t5_large",       1024, 64,  4096,  24, 16,  false},
    {"t5_3b",          1024, 128, 16384, 24, 32,  false},
    {"t5_11b",         1024, 128, 65536, 24, 128, false},
    {"t5_v1_1_small",  512,  64,  1024,  8,  6,   true},
    {"t5_v1_1_base",   768,  64,  2048,  12, 12,  true},
    {"t5_v1_1_large",  1024, 64,  2816,  24, 16,  true},
    {"t5_v1_1_xl",     2048, 64,  5120,  24, 32,  true},
    {"t5_v1_1_xxl",    4096, 64,  10240, 24, 64,  true},
    /* clang-format on */
};

static const char *published(int i, struct architecture *a)
{
    if (i >= (int)array_length(rows))
        return NULL;
    const struct row *row = &rows[i];
    if (!a)
        return row->name;
    a->t5.d_model = row->d_model;
    a->t5.d_kv = row->d_kv;
    a->t5.d_ff = row->d_ff;
    a->t5.num_layers = row->L;
    a->t5.num_heads = row->heads;
    a->t5.feed_forward_proj = row->v1_1 ? T5_GATED_GELU : T5_RELU;
    a->t5.tie_word_embeddings = !row->v1_1;
    return row->name;
}

static void set_defaults(struct architecture *a)
{
    a->t5 = t5_default_config;
    a->pad_token_id = 0;
    a->eos_token_ids[0] = 1;
    a->eos_count = 1;
}

#define AT(field) offsetof(struct architecture, t5.field)
static const struct model_override overrides[] = {
    {"vocab_size", AT(vocab_size), {0}},
    {"hidden_size", AT(d_model), {0}},
    {"head_dim", AT(d_kv), {0}},
    {"intermediate_size", AT(d_ff), {0}},
    {"num_hidden_layers", AT(num_layers), {AT(num_decoder_layers)}},
    {"num_attention_heads", AT(num_heads), {0}},
    {"rms_norm_eps", AT(layer_norm_epsilon), {0}},
    {"layer_norm_epsilon", AT(layer_norm_epsilon), {0}},
    {"tie_word_embeddings", AT(tie_word_embeddings), {0}},
    {"dropout", AT(dropout_rate), {0}},
    {NULL, 0, {0}},
};

/* Files of before transformers 5 do not say whether the decoder's output is scaled, and may say
 * that the head is tied although it is not. */
static bool *undetermined_tie(struct architecture *a)
{
    bool is_undetermined = a->t5.tie_word_embeddings && a->t5.scaling != T5_SCALES_IF_TIED;
    return is_undetermined ? &a->t5.tie_word_embeddings : NULL;
}

/* ---- config.json ---- */

static void read_feed_forward(struct json_reader *reader, const struct json *value, void *field)
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

static void read_scaling(struct json_reader *reader, const struct json *value, void *field)
{
    struct architecture *a = field;
    bool scales;
    if (config_json_read_bool(reader, value, &scales))
        a->t5.scaling = scales ? T5_SCALES : T5_SCALES_NOT;
}

/* clang-format off */
static const struct json_field fields[] = {
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
    JSON_CUSTOM_SAME("scale_decoder_outputs", read_scaling),
    JSON_CUSTOM_SAME("is_encoder_decoder", config_json_true),
    JSON_CUSTOM_SAME("is_decoder", config_json_false),
    /* what follows from feed_forward_proj; how far the first T5 was trained, which limits nothing */
    JSON_KNOWN("dense_act_fn"), JSON_KNOWN("is_gated_act"), JSON_KNOWN("n_positions"),
    JSON_KNOWN("output_past"), JSON_KNOWN("classifier_dropout"),
    JSON_END,
};
/* clang-format on */

static void write(struct json *object, const struct architecture *a)
{
    const struct t5_config *c = &a->t5;
    json_set_integer(object, "vocab_size", c->vocab_size);
    json_set_integer(object, "d_model", c->d_model);
    json_set_integer(object, "d_kv", c->d_kv);
    json_set_integer(object, "d_ff", c->d_ff);
    json_set_integer(object, "num_layers", c->num_layers);
    json_set_integer(object, "num_decoder_layers", t5_decoder_layers(c));
    json_set_integer(object, "num_heads", c->num_heads);
    json_set_integer(object, "relative_attention_num_buckets", c->relative_attention_num_buckets);
    json_set_integer(object, "relative_attention_max_distance", c->relative_attention_max_distance);
    json_set_integer(object, "decoder_start_token_id", c->decoder_start_token_id);
    config_json_set_real(object, "dropout_rate", c->dropout_rate);
    config_json_set_real(object, "layer_norm_epsilon", c->layer_norm_epsilon);
    config_json_set_real(object, "initializer_factor", c->initializer_factor);
    json_set_text(object, "feed_forward_proj", t5_feed_forward_name(c->feed_forward_proj));
    config_json_set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
    config_json_set_bool(object, "scale_decoder_outputs", t5_scales(c));
    config_json_set_bool(object, "is_encoder_decoder", true);
}

static void write_generation(struct json *object, const struct architecture *a)
{
    json_set_integer(object, "decoder_start_token_id", a->t5.decoder_start_token_id);
}

static int check(const struct architecture *a, struct error *err)
{
    return t5_check(&a->t5, err);
}

static struct model *build(struct arena *arena, const struct architecture *a)
{
    return model_t5_new(arena, &a->t5, a->pad_token_id < 0 ? 0 : a->pad_token_id);
}

const struct model_family family_t5 = {
    .name = "t5",
    .block_class = "T5Block",
    .heads = {{MODEL_TRANSLATION, {"T5ForConditionalGeneration", "T5WithLMHeadModel"}}},
    .head_count = 1,
    .set_defaults = set_defaults,
    .published = published,
    .overrides = overrides,
    .undetermined_tie = undetermined_tie,
    .embedding = "shared.weight",
    .head = "lm_head.weight",
    .fields = fields,
    .write = write,
    .write_generation = write_generation,
    .check = check,
    .build = build,
};
