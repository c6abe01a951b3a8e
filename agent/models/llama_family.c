/* Llama and Mistral: fields of config.json and published sizes (agent/models/families.h). */
#include "agent/models/config_json_values.h"
#include "agent/models/config_json_write.h"
#include "agent/models/families.h"

#include "base/json.h"
#include "base/mem.h"

/* ---- published sizes (each model's config.json); hd is D / heads everywhere ---- */

struct published {
    const char *name;
    int64_t V, D, L, heads, kv_heads, I, positions;
    double theta, eps, llama3_factor; /* llama3_factor: 0: default rope */
    bool tied;
    int64_t bos, eos;
};

static const struct published llamas[] = {
    /* clang-format off */
    {"llama2_7b",     32000,  4096,  32,  32,  32, 11008, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama2_13b",    32000,  5120,  40,  40,  40, 13824, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama2_70b",    32000,  8192,  80,  64,  8,  28672, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama3_8b",     128256, 4096,  32,  32,  8,  14336, 8192,   5e5, 1e-5, 0,  false, 128000, 128001},
    {"llama3_70b",    128256, 8192,  80,  64,  8,  28672, 8192,   5e5, 1e-5, 0,  false, 128000, 128001},
    {"llama3_1_8b",   128256, 4096,  32,  32,  8,  14336, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_1_70b",  128256, 8192,  80,  64,  8,  28672, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_1_405b", 128256, 16384, 126, 128, 8,  53248, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_2_1b",   128256, 2048,  16,  32,  8,  8192,  131072, 5e5, 1e-5, 32, true,  128000, 128001},
    {"llama3_2_3b",   128256, 3072,  28,  24,  8,  8192,  131072, 5e5, 1e-5, 32, true,  128000, 128001},
    /* clang-format on */
};
static const struct published mistrals[] = {
    /* clang-format off */
    {"mathstral_7b",  32768,  4096,  32,  32,  8,  14336, 32768,  1e6, 1e-5, 0,  false, 1, 2},
    /* clang-format on */
};

static void fill(const struct published *row, struct architecture *a)
{
    struct llama_config *llama = &a->llama;
    llama->vocab_size = row->V;
    llama->hidden_size = row->D;
    llama->intermediate_size = row->I;
    llama->num_hidden_layers = row->L;
    llama->num_attention_heads = row->heads;
    llama->num_key_value_heads = row->kv_heads;
    llama->max_position_embeddings = row->positions;
    llama->rms_norm_eps = row->eps;
    llama->tie_word_embeddings = row->tied;
    llama->rope = (struct rope){.type = ROPE_DEFAULT, .theta = row->theta, .factor = 1};
    if (row->llama3_factor > 0)
        llama->rope = (struct rope){.type = ROPE_LLAMA3,
                                    .theta = row->theta,
                                    .factor = row->llama3_factor,
                                    .low_freq_factor = 1,
                                    .high_freq_factor = 4,
                                    .original_max_positions = 8192};
    a->bos_token_id = row->bos;
    a->eos_token_ids[0] = row->eos;
    a->eos_count = 1;
}

static const char *published_llama(int i, struct architecture *a)
{
    if (i >= (int)array_length(llamas))
        return NULL;
    if (a)
        fill(&llamas[i], a);
    return llamas[i].name;
}

static const char *published_mistral(int i, struct architecture *a)
{
    if (i >= (int)array_length(mistrals))
        return NULL;
    if (a)
        fill(&mistrals[i], a);
    return mistrals[i].name;
}

/* ---- the configuration ---- */

static void llama_defaults(struct architecture *a)
{
    a->llama = llama_default_config;
}

static void adopt_mistral(struct architecture *a)
{
    a->llama.family = "Mistral";
}

static void mistral_defaults(struct architecture *a)
{
    a->llama = llama_default_config;
    adopt_mistral(a);
}

static struct rope *rope(struct architecture *a)
{
    return &a->llama.rope;
}

static bool depends_on_length(const struct architecture *a, int64_t T)
{
    return rope_depends_on_length(&a->llama.rope, T, a->llama.max_position_embeddings);
}

#define AT(field) offsetof(struct architecture, llama.field)
static const struct model_override overrides[] = {
    {"vocab_size", AT(vocab_size), {0}},
    {"hidden_size", AT(hidden_size), {AT(head_dim)}},
    {"intermediate_size", AT(intermediate_size), {0}},
    {"num_hidden_layers", AT(num_hidden_layers), {0}},
    {"num_attention_heads", AT(num_attention_heads), {AT(head_dim), AT(num_key_value_heads)}},
    {"num_key_value_heads", AT(num_key_value_heads), {0}},
    {"head_dim", AT(head_dim), {0}},
    {"max_position_embeddings", AT(max_position_embeddings), {0}},
    {"rms_norm_eps", AT(rms_norm_eps), {0}},
    {"initializer_range", AT(initializer_range), {0}},
    {"rope_theta", AT(rope.theta), {0}},
    {"tie_word_embeddings", AT(tie_word_embeddings), {0}},
    {NULL, 0, {0}},
};

/* ---- config.json ---- */

/* clang-format off */
static const struct json_field fields[] = {
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
    JSON_PART("rope_scaling", struct architecture, llama.rope, config_json_rope_fields),
    JSON_PART("rope_parameters", struct architecture, llama.rope, config_json_rope_fields),
    JSON_BOOL("attention_bias", struct architecture, llama.attention_bias),
    JSON_BOOL("mlp_bias", struct architecture, llama.mlp_bias),
    JSON_BOOL("tie_word_embeddings", struct architecture, llama.tie_word_embeddings),
    JSON_CUSTOM("attention_dropout", struct architecture, llama.attention_dropout, config_json_probability),
    JSON_CUSTOM_SAME("hidden_act", config_json_silu),
    JSON_CUSTOM_SAME("partial_rotary_factor", config_json_one),
    JSON_KNOWN("pretraining_tp"),
    JSON_END,
};
/* clang-format on */

/* What rope_type asks for may come before or behind it. */
static void check_fields(struct json_reader *reader, const struct architecture *a)
{
    const struct rope *rope = &a->llama.rope;
    if (rope->type == ROPE_LLAMA3) {
        if (rope->original_max_positions < 1)
            json_problem(reader, "rope_scaling.original_max_position_embeddings: missing; rope "
                                 "type llama3 needs it");
        if (!(rope->low_freq_factor > 0))
            json_problem(reader,
                         "rope_scaling.low_freq_factor: missing; rope type llama3 needs it");
        else if (!(rope->high_freq_factor > rope->low_freq_factor))
            json_problem(reader,
                         "rope_scaling: high_freq_factor %g must be above low_freq_factor %g for "
                         "rope type llama3",
                         rope->high_freq_factor, rope->low_freq_factor);
    }
    if (a->llama.sliding_window)
        json_note(reader,
                  "sliding_window %lld: nothing is masked by it, longer sequences are refused",
                  (long long)a->llama.sliding_window);
}

static void write_common(struct json *object, const struct llama_config *c)
{
    json_set_integer(object, "vocab_size", c->vocab_size);
    json_set_integer(object, "hidden_size", c->hidden_size);
    json_set_integer(object, "intermediate_size", c->intermediate_size);
    json_set_integer(object, "num_hidden_layers", c->num_hidden_layers);
    json_set_integer(object, "num_attention_heads", c->num_attention_heads);
    json_set_integer(object, "num_key_value_heads", llama_kv_heads(c));
    json_set_integer(object, "head_dim", llama_head_dim(c));
    json_set_integer(object, "max_position_embeddings", c->max_position_embeddings);
    json_set_text(object, "hidden_act", "silu");
    config_json_set_real(object, "initializer_range", c->initializer_range);
    config_json_set_real(object, "rms_norm_eps", c->rms_norm_eps);
    config_json_set_real(object, "rope_theta", c->rope.theta);
    config_json_set_rope(object, "rope_scaling", &c->rope);
    config_json_set_real(object, "attention_dropout", c->attention_dropout);
    config_json_set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
}

static void write_llama(struct json *object, const struct architecture *a)
{
    write_common(object, &a->llama);
    config_json_set_bool(object, "attention_bias", a->llama.attention_bias);
    config_json_set_bool(object, "mlp_bias", a->llama.mlp_bias);
}

static void write_mistral(struct json *object, const struct architecture *a)
{
    write_common(object, &a->llama);
    config_json_set_size(object, "sliding_window", a->llama.sliding_window);
}

/* ---- the rows ---- */

static int check(const struct architecture *a, struct error *err)
{
    return llama_check(&a->llama, err) < 0
               ? -1
               : language_check_field(a->llama.family, "pad_token_id", a->pad_token_id, -1,
                                      a->llama.vocab_size - 1, err);
}

static struct model *build(struct arena *arena, const struct architecture *a)
{
    return model_llama_new(arena, &a->llama, a->pad_token_id);
}

const struct model_family family_llama = {
    .name = "llama",
    .block_class = "LlamaDecoderLayer",
    .heads = {{MODEL_NEXT_TOKEN, {"LlamaForCausalLM", "LlamaModel"}}},
    .head_count = 1,
    .set_defaults = llama_defaults,
    .published = published_llama,
    .overrides = overrides,
    .rope = rope,
    .depends_on_length = depends_on_length,
    .fields = fields,
    .check_fields = check_fields,
    .write = write_llama,
    .check = check,
    .build = build,
};

const struct model_family family_mistral = {
    .name = "mistral",
    .block_class = "MistralDecoderLayer",
    .layers_of = &family_llama,
    .adopt = adopt_mistral,
    .heads = {{MODEL_NEXT_TOKEN, {"MistralForCausalLM", "MistralModel"}}},
    .head_count = 1,
    .set_defaults = mistral_defaults,
    .published = published_mistral,
    .overrides = overrides,
    .rope = rope,
    .depends_on_length = depends_on_length,
    .fields = fields,
    .check_fields = check_fields,
    .write = write_mistral,
    .check = check,
    .build = build,
};
