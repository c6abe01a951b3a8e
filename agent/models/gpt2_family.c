/* GPT-2: fields of config.json and published sizes (agent/models/families.h). */
#include "agent/models/config_json_values.h"
#include "agent/models/config_json_write.h"
#include "agent/models/families.h"

#include "base/json.h"
#include "base/mem.h"

/* Those of 50257 tokens and 1024 positions (config.json of each). */
static const struct row {
    const char *name;
    int64_t D, L, heads;
} rows[] = {
    /* clang-format off */
    {"gpt2", 768, 12, 12},
    {"gpt2_medium", 1024, 24, 16},
    {"gpt2_large", 1280, 36, 20},
    {"gpt2_xl", 1600, 48, 25},
    /* clang-format on */
};

static const char *published(int i, struct architecture *a)
{
    enum { END_OF_TEXT = 50256 };
    if (i >= (int)array_length(rows))
        return NULL;
    if (!a)
        return rows[i].name;
    a->gpt2.vocab_size = END_OF_TEXT + 1;
    a->gpt2.n_positions = 1024;
    a->gpt2.n_embd = rows[i].D;
    a->gpt2.n_layer = rows[i].L;
    a->gpt2.n_head = rows[i].heads;
    a->gpt2.layer_norm_epsilon = 1e-5;
    a->gpt2.tie_word_embeddings = true;
    a->bos_token_id = END_OF_TEXT;
    a->eos_token_ids[0] = END_OF_TEXT;
    a->eos_count = 1;
    return rows[i].name;
}

static void set_defaults(struct architecture *a)
{
    a->gpt2 = gpt2_default_config;
}

#define AT(field) offsetof(struct architecture, gpt2.field)
static const struct model_override overrides[] = {
    {"vocab_size", AT(vocab_size), {0}},
    {"hidden_size", AT(n_embd), {0}},
    {"intermediate_size", AT(n_inner), {0}},
    {"num_hidden_layers", AT(n_layer), {0}},
    {"num_attention_heads", AT(n_head), {0}},
    {"max_position_embeddings", AT(n_positions), {0}},
    {"layer_norm_epsilon", AT(layer_norm_epsilon), {0}},
    {"initializer_range", AT(initializer_range), {0}},
    {"tie_word_embeddings", AT(tie_word_embeddings), {0}},
    {"dropout", AT(resid_pdrop), {0}},
    {"dropout", AT(embd_pdrop), {0}},
    {"dropout", AT(attn_pdrop), {0}},
    {"resid_pdrop", AT(resid_pdrop), {0}},
    {"embd_pdrop", AT(embd_pdrop), {0}},
    {"attn_pdrop", AT(attn_pdrop), {0}},
    {NULL, 0, {0}},
};

/* clang-format off */
static const struct json_field fields[] = {
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

static void write(struct json *object, const struct architecture *a)
{
    const struct gpt2_config *c = &a->gpt2;
    json_set_integer(object, "vocab_size", c->vocab_size);
    json_set_integer(object, "n_positions", c->n_positions);
    json_set_integer(object, "n_ctx", c->n_positions);
    json_set_integer(object, "n_embd", c->n_embd);
    json_set_integer(object, "n_layer", c->n_layer);
    json_set_integer(object, "n_head", c->n_head);
    config_json_set_size(object, "n_inner", c->n_inner);
    json_set_text(object, "activation_function", c->gelu_tanh ? "gelu_new" : "gelu");
    config_json_set_real(object, "layer_norm_epsilon", c->layer_norm_epsilon);
    config_json_set_real(object, "initializer_range", c->initializer_range);
    config_json_set_real(object, "embd_pdrop", c->embd_pdrop);
    config_json_set_real(object, "attn_pdrop", c->attn_pdrop);
    config_json_set_real(object, "resid_pdrop", c->resid_pdrop);
    config_json_set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
}

static int check(const struct architecture *a, struct error *err)
{
    return gpt2_check(&a->gpt2, err);
}

static struct model *build(struct arena *arena, const struct architecture *a)
{
    return model_gpt2_new(arena, &a->gpt2);
}

const struct model_family family_gpt2 = {
    .name = "gpt2",
    .block_class = "GPT2Block",
    .heads = {{MODEL_NEXT_TOKEN, {"GPT2LMHeadModel", "GPT2Model"}}},
    .head_count = 1,
    .set_defaults = set_defaults,
    .published = published,
    .overrides = overrides,
    .fields = fields,
    .write = write,
    .check = check,
    .build = build,
};
