/* BERT: fields of config.json and published sizes (agent/models/families.h). */
#include "agent/models/config_json_values.h"
#include "agent/models/config_json_write.h"
#include "agent/models/families.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

static const struct row {
    const char *name;
    int64_t V, D, L, heads, I;
} rows[] = {
    /* clang-format off */
    {"bert_base_uncased",  30522, 768,  12, 12, 3072},
    {"bert_base_cased",    28996, 768,  12, 12, 3072},
    {"bert_large_uncased", 30522, 1024, 24, 16, 4096},
    {"bert_large_cased",   28996, 1024, 24, 16, 4096},
    /* clang-format on */
};

static const char *published(int i, struct architecture *a)
{
    if (i >= (int)array_length(rows))
        return NULL;
    if (!a)
        return rows[i].name;
    a->bert.vocab_size = rows[i].V;
    a->bert.hidden_size = rows[i].D;
    a->bert.num_hidden_layers = rows[i].L;
    a->bert.num_attention_heads = rows[i].heads;
    a->bert.intermediate_size = rows[i].I;
    return rows[i].name;
}

static void set_defaults(struct architecture *a)
{
    a->bert = bert_default_config;
    a->pad_token_id = 0;
}

static void set_head(struct architecture *a, int head)
{
    a->bert.head = (enum bert_head)head;
}

static int get_head(const struct architecture *a)
{
    return (int)a->bert.head;
}

static void set_labels(struct architecture *a, const char *names)
{
    a->bert.label_names = names;
}

#define AT(field) offsetof(struct architecture, bert.field)
static const struct model_override overrides[] = {
    {"vocab_size", AT(vocab_size), {0}},
    {"hidden_size", AT(hidden_size), {0}},
    {"intermediate_size", AT(intermediate_size), {0}},
    {"num_hidden_layers", AT(num_hidden_layers), {0}},
    {"num_attention_heads", AT(num_attention_heads), {0}},
    {"max_position_embeddings", AT(max_position_embeddings), {0}},
    {"num_labels", AT(num_labels), {0}},
    {"layer_norm_epsilon", AT(layer_norm_eps), {0}},
    {"initializer_range", AT(initializer_range), {0}},
    {"dropout", AT(hidden_dropout_prob), {0}},
    {"dropout", AT(attention_probs_dropout_prob), {0}},
    {"dropout", AT(classifier_dropout), {0}},
    {"attn_pdrop", AT(attention_probs_dropout_prob), {0}},
    {NULL, 0, {0}},
};

/* ---- config.json ---- */

static void read_labels(struct json_reader *reader, const struct json *value, void *field)
{
    struct architecture *a = field;
    config_json_read_labels(reader, value, &a->bert.num_labels, &a->bert.label_names);
}

static void read_problem_type(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "single_label_classification") != 0)
        json_problem(reader, "unsupported \"%.40s\": single_label_classification works", name);
}

static void read_position_type(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "absolute") != 0)
        json_problem(reader, "unsupported \"%.40s\": absolute works", name);
}

/* clang-format off */
static const struct json_field fields[] = {
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

static void write(struct json *object, const struct architecture *a)
{
    const struct bert_config *c = &a->bert;
    json_set_integer(object, "vocab_size", c->vocab_size);
    json_set_integer(object, "hidden_size", c->hidden_size);
    json_set_integer(object, "num_hidden_layers", c->num_hidden_layers);
    json_set_integer(object, "num_attention_heads", c->num_attention_heads);
    json_set_integer(object, "intermediate_size", c->intermediate_size);
    json_set_text(object, "hidden_act", c->gelu_tanh ? "gelu_new" : "gelu");
    config_json_set_real(object, "hidden_dropout_prob", c->hidden_dropout_prob);
    config_json_set_real(object, "attention_probs_dropout_prob", c->attention_probs_dropout_prob);
    if (c->classifier_dropout < 0)
        config_json_set_null(object, "classifier_dropout");
    else
        config_json_set_real(object, "classifier_dropout", c->classifier_dropout);
    json_set_integer(object, "max_position_embeddings", c->max_position_embeddings);
    json_set_integer(object, "type_vocab_size", c->type_vocab_size);
    config_json_set_real(object, "initializer_range", c->initializer_range);
    config_json_set_real(object, "layer_norm_eps", c->layer_norm_eps);
    json_set_text(object, "position_embedding_type", "absolute");
    if (c->head == BERT_CLASSIFICATION)
        config_json_set_labels(object, c->num_labels, c->label_names);
}

static int check(const struct architecture *a, struct error *err)
{
    return bert_check(&a->bert, err) < 0
               ? -1
               : language_check_field("BERT", "pad_token_id", a->pad_token_id, -1,
                                      a->bert.vocab_size - 1, err);
}

static struct model *build(struct arena *arena, const struct architecture *a)
{
    return model_bert_new(arena, &a->bert, a->pad_token_id);
}

const struct model_family family_bert = {
    .name = "bert",
    .block_class = "BertLayer",
    .heads = {[BERT_MASKED_LM] = {MODEL_MASKED, {"BertForMaskedLM", "BertModel"}},
              [BERT_PRETRAINING] = {MODEL_PRETRAINING, {"BertForPreTraining"}},
              [BERT_CLASSIFICATION] = {MODEL_CLASSES, {"BertForSequenceClassification"}}},
    .head_count = BERT_HEADS,
    .set_defaults = set_defaults,
    .set_head = set_head,
    .get_head = get_head,
    .set_labels = set_labels,
    .published = published,
    .overrides = overrides,
    .fields = fields,
    .write = write,
    .check = check,
    .build = build,
};

const char *bert_class_name(enum bert_head head)
{
    return family_bert.heads[head].classes[0];
}
