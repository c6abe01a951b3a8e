#include "agent/models/config_json.h"

#include "agent/models/language.h"
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* ---- values ---- */

static bool read_number(struct json_reader *reader, const json_t *value, double low, double high,
                        double *ret_number)
{
    double number = json_number_value(value);
    if (json_is_number(value) && number >= low && number <= high) {
        *ret_number = number;
        return true;
    }
    auto_free char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    json_problem(reader, "must be a number within %g and %g, not %.40s", low, high, text);
    return false;
}

static void read_positive(struct json_reader *reader, const json_t *value, void *field)
{
    read_number(reader, value, 1e-30, 1e30, field);
}

static void read_range(struct json_reader *reader, const json_t *value, void *field)
{
    read_number(reader, value, 0, 1e3, field);
}

static void read_probability(struct json_reader *reader, const json_t *value, void *field)
{
    read_number(reader, value, 0, 0.999999, field);
}

static void read_factor(struct json_reader *reader, const json_t *value, void *field)
{
    read_number(reader, value, 1, 1e6, field);
}

/* One id, or a list of them, of which the first few are kept. */
static void read_eos(struct json_reader *reader, const json_t *value, void *field)
{
    struct architecture *a = field;
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    if (count > ARCHITECTURE_MAX_EOS) {
        json_problem(reader, "%zu ids: at most %d are supported", count, ARCHITECTURE_MAX_EOS);
        return;
    }
    a->eos_count = 0;
    for (size_t i = 0; i < count; i++)
        if (json_read_integer(reader, json_is_array(value) ? json_array_get(value, i) : value, 0,
                              INT32_MAX, &a->eos_token_ids[a->eos_count]))
            a->eos_count++;
}

static void read_rope_type(struct json_reader *reader, const json_t *value, void *field)
{
    struct rope *rope = field;
    const char *name = json_read_text(reader, value);
    if (!name)
        return;
    for (int type = 0; type < ROPE_TYPES; type++)
        if (strcmp(name, rope_type_name(type)) == 0) {
            rope->type = type;
            return;
        }
    json_problem(reader,
                 "unsupported rope type \"%.40s\": default, linear, dynamic and llama3 work", name);
}

static void read_hidden_act(struct json_reader *reader, const json_t *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        json_problem(reader, "unsupported activation \"%.40s\": silu works", name);
}

static void read_gelu(struct json_reader *reader, const json_t *value, void *field)
{
    bool *tanh = field;
    const char *name = json_read_text(reader, value);
    if (!name)
        return;
    *tanh = strcmp(name, "gelu") != 0;
    if (*tanh && strcmp(name, "gelu_new") != 0 && strcmp(name, "gelu_pytorch_tanh") != 0)
        json_problem(reader,
                     "unsupported activation \"%.40s\": gelu_new, gelu_pytorch_tanh and gelu work",
                     name);
}

static void must_be_true(struct json_reader *reader, const json_t *value, void *field)
{
    (void)field;
    if (!json_is_true(value))
        json_problem(reader, "only true is supported");
}

static void must_be_false(struct json_reader *reader, const json_t *value, void *field)
{
    (void)field;
    if (!json_is_false(value))
        json_problem(reader, "only false is supported");
}

/* ---- tables ---- */

/* clang-format off */
#define SIZE(key, out, field, least, most) \
    {.name = key, .kind = JSON_KIND_INTEGER, .offset = offsetof(out, field), \
     .second = JSON_NO_OFFSET, .low = least, .high = most}

static const struct json_field rope_fields[] = {
    JSON_CUSTOM("rope_theta", struct rope, theta, read_positive),
    JSON_CUSTOM_SAME("rope_type", read_rope_type),
    JSON_CUSTOM_SAME("type", read_rope_type),
    JSON_CUSTOM("factor", struct rope, factor, read_factor),
    JSON_CUSTOM("low_freq_factor", struct rope, low_freq_factor, read_positive),
    JSON_CUSTOM("high_freq_factor", struct rope, high_freq_factor, read_positive),
    SIZE("original_max_position_embeddings", struct rope, original_max_positions, 1,
         LANGUAGE_MAX_TOKENS),
    JSON_END,
};

/* In every config.json. */
#define COMMON_FIELDS \
    JSON_KNOWN("architectures"), JSON_KNOWN("model_type"), JSON_KNOWN("transformers_version"), \
    JSON_KNOWN("torch_dtype"), JSON_KNOWN("dtype"), JSON_KNOWN("use_cache"), \
    JSON_KNOWN("_name_or_path"), JSON_KNOWN("task_specific_params"), \
    SIZE("bos_token_id", struct architecture, bos_token_id, 0, INT32_MAX), \
    SIZE("pad_token_id", struct architecture, pad_token_id, -1, INT32_MAX), \
    JSON_CUSTOM_SAME("eos_token_id", read_eos)

static const struct json_field llama_fields[] = {
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
    JSON_CUSTOM("initializer_range", struct architecture, llama.initializer_range, read_range),
    JSON_CUSTOM("rms_norm_eps", struct architecture, llama.rms_norm_eps, read_range),
    JSON_CUSTOM("rope_theta", struct architecture, llama.rope.theta, read_positive),
    JSON_PART("rope_scaling", struct architecture, llama.rope, rope_fields),
    JSON_PART("rope_parameters", struct architecture, llama.rope, rope_fields),
    JSON_BOOL("attention_bias", struct architecture, llama.attention_bias),
    JSON_BOOL("mlp_bias", struct architecture, llama.mlp_bias),
    JSON_BOOL("tie_word_embeddings", struct architecture, llama.tie_word_embeddings),
    JSON_CUSTOM("attention_dropout", struct architecture, llama.attention_dropout, read_probability),
    JSON_CUSTOM_SAME("hidden_act", read_hidden_act),
    JSON_KNOWN("pretraining_tp"),
    JSON_END,
};

static const struct json_field gpt2_fields[] = {
    COMMON_FIELDS,
    SIZE("vocab_size", struct architecture, gpt2.vocab_size, 1, INT32_MAX),
    SIZE("n_positions", struct architecture, gpt2.n_positions, 1, LANGUAGE_MAX_TOKENS),
    SIZE("n_embd", struct architecture, gpt2.n_embd, 1, LANGUAGE_MAX_WIDTH),
    SIZE("n_layer", struct architecture, gpt2.n_layer, 1, MODULE_MAX_CHILDREN),
    SIZE("n_head", struct architecture, gpt2.n_head, 1, LANGUAGE_MAX_WIDTH),
    SIZE("n_inner", struct architecture, gpt2.n_inner, 1, LANGUAGE_MAX_WIDTH),
    JSON_CUSTOM("activation_function", struct architecture, gpt2.gelu_tanh, read_gelu),
    JSON_CUSTOM("layer_norm_epsilon", struct architecture, gpt2.layer_norm_epsilon, read_range),
    JSON_CUSTOM("initializer_range", struct architecture, gpt2.initializer_range, read_range),
    JSON_CUSTOM("embd_pdrop", struct architecture, gpt2.embd_pdrop, read_probability),
    JSON_CUSTOM("attn_pdrop", struct architecture, gpt2.attn_pdrop, read_probability),
    JSON_CUSTOM("resid_pdrop", struct architecture, gpt2.resid_pdrop, read_probability),
    JSON_BOOL("tie_word_embeddings", struct architecture, gpt2.tie_word_embeddings),
    JSON_CUSTOM_SAME("scale_attn_weights", must_be_true),
    JSON_CUSTOM_SAME("scale_attn_by_inverse_layer_idx", must_be_false),
    JSON_CUSTOM_SAME("add_cross_attention", must_be_false),
    JSON_KNOWN("n_ctx"), JSON_KNOWN("reorder_and_upcast_attn"),
    /* of a head that is not built */
    JSON_KNOWN("summary_activation"), JSON_KNOWN("summary_first_dropout"),
    JSON_KNOWN("summary_proj_to_labels"), JSON_KNOWN("summary_type"),
    JSON_KNOWN("summary_use_proj"),
    JSON_END,
};
/* clang-format on */

static const struct json_field *fields_of(enum architecture_kind kind)
{
    return kind == ARCHITECTURE_GPT2 ? gpt2_fields : llama_fields;
}

/* ---- which model ---- */

static const struct type {
    const char *name;       /* model_type */
    const char *classes[3]; /* what `architectures` may say */
    enum architecture_kind kind;
    const char *family;
} types[] = {
    {"llama", {"LlamaForCausalLM", "LlamaModel"}, ARCHITECTURE_LLAMA, "Llama"},
    {"mistral", {"MistralForCausalLM", "MistralModel"}, ARCHITECTURE_LLAMA, "Mistral"},
    {"gpt2", {"GPT2LMHeadModel", "GPT2Model"}, ARCHITECTURE_GPT2, "GPT2"},
};

struct head {
    const char *model_type;
    const char **architectures;
    size_t architecture_count;
};

static const struct json_field head_fields[] = {
    JSON_TEXT("model_type", struct head, model_type),
    JSON_TEXTS("architectures", struct head, architectures, architecture_count),
    JSON_END,
};

static bool has_class(const struct type *type, const char *name)
{
    for (size_t i = 0; type->classes[i]; i++)
        if (name && strcmp(type->classes[i], name) == 0)
            return true;
    return false;
}

static const struct type *find_type(struct json_reader *reader, const json_t *root)
{
    struct head head = {0};
    struct lines *notes = take(reader->notes);
    json_read(reader, root, head_fields, &head);
    reader->notes = notes;
    const char *class_name = head.architecture_count ? head.architectures[0] : NULL;
    for (size_t i = 0; i < array_length(types); i++) {
        bool by_type = head.model_type && strcmp(types[i].name, head.model_type) == 0;
        if (by_type && class_name && !has_class(&types[i], class_name)) {
            json_problem(reader, "architectures: unsupported architecture \"%.60s\": %s works",
                         class_name, types[i].classes[0]);
            return NULL;
        }
        if (by_type || (!head.model_type && has_class(&types[i], class_name)))
            return &types[i];
    }
    json_problem(reader, "model_type: unsupported model \"%.40s\": llama, mistral and gpt2 work",
                 head.model_type ? head.model_type
                 : class_name    ? class_name
                                 : "");
    return NULL;
}

/* ---- reading ---- */

/* What no single field can tell. */
static void check_rope(struct json_reader *reader, const struct rope *rope)
{
    if (rope->type != ROPE_LLAMA3)
        return;
    if (rope->original_max_positions < 1)
        json_problem(reader, "rope_scaling.original_max_position_embeddings: missing; rope type "
                             "llama3 needs it");
    if (!(rope->high_freq_factor > rope->low_freq_factor))
        json_problem(reader,
                     "rope_scaling: high_freq_factor %g must be above low_freq_factor %g for rope "
                     "type llama3",
                     rope->high_freq_factor, rope->low_freq_factor);
}

static int fail(const char *path, const struct lines *problems, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s: %s", path, lines_join(problems));
}

int config_json_read(struct arena *arena, const char *path, const char *text, size_t bytes,
                     struct architecture *ret_architecture, struct lines *notes, struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return error_set(err, ERR_CONFIG, "%s: line %d: %s", path, where.line, where.text);
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems, .notes = notes};
    const struct type *type = json_is_object_here(&reader, root) ? find_type(&reader, root) : NULL;
    struct architecture architecture = {0};
    if (type) {
        architecture = architecture_default(type->kind);
        architecture.llama.family = type->family;
        json_read(&reader, root, fields_of(type->kind), &architecture);
        check_rope(&reader, &architecture.llama.rope);
        if (architecture.llama.sliding_window)
            json_note(&reader,
                      "sliding_window %lld: nothing is masked by it, longer sequences are "
                      "refused",
                      (long long)architecture.llama.sliding_window);
    }
    json_decref(root);
    if (problems.count > 0)
        return fail(path, &problems, err);
    if (architecture_check(&architecture, err) < 0)
        return error_wrap(err, "%s", path);
    *ret_architecture = architecture;
    return 0;
}
