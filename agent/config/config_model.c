#include "agent/config/config_model.h"

#include <assert.h>
#include <string.h>

/* Where a key goes in one kind of model. A key without a row for a kind is one that it has not. */
enum take { TAKE_COUNT, TAKE_NUMBER, TAKE_CHOICE };
static const struct row {
    const char *key;
    size_t given; /* in struct agent_config */
    enum take take;
    enum architecture_kind kind;
    size_t field; /* in struct architecture */
} rows[] = {
#define OVERRIDE(take, kind, key, field)                                                           \
    {                                                                                              \
        "model.config_overrides." #key, offsetof(struct agent_config, overrides.key), take,        \
            ARCHITECTURE_##kind, offsetof(struct architecture, field)                              \
    }
#define COUNT(kind, key, field)  OVERRIDE(TAKE_COUNT, kind, key, field)
#define NUMBER(kind, key, field) OVERRIDE(TAKE_NUMBER, kind, key, field)
#define TIES(kind, field)        OVERRIDE(TAKE_CHOICE, kind, tie_word_embeddings, field)
#define DROPOUT(kind, field)                                                                       \
    {                                                                                              \
        "model.dropout", offsetof(struct agent_config, model.dropout), TAKE_NUMBER,                \
            ARCHITECTURE_##kind, offsetof(struct architecture, field)                              \
    }
    COUNT(LLAMA, vocab_size, llama.vocab_size),
    COUNT(LLAMA, hidden_size, llama.hidden_size),
    COUNT(LLAMA, intermediate_size, llama.intermediate_size),
    COUNT(LLAMA, num_hidden_layers, llama.num_hidden_layers),
    COUNT(LLAMA, num_attention_heads, llama.num_attention_heads),
    COUNT(LLAMA, num_key_value_heads, llama.num_key_value_heads),
    COUNT(LLAMA, head_dim, llama.head_dim),
    COUNT(LLAMA, max_position_embeddings, llama.max_position_embeddings),
    NUMBER(LLAMA, rms_norm_eps, llama.rms_norm_eps),
    NUMBER(LLAMA, initializer_range, llama.initializer_range),
    NUMBER(LLAMA, rope_theta, llama.rope.theta),
    TIES(LLAMA, llama.tie_word_embeddings),

    COUNT(GPT2, vocab_size, gpt2.vocab_size),
    COUNT(GPT2, hidden_size, gpt2.n_embd),
    COUNT(GPT2, intermediate_size, gpt2.n_inner),
    COUNT(GPT2, num_hidden_layers, gpt2.n_layer),
    COUNT(GPT2, num_attention_heads, gpt2.n_head),
    COUNT(GPT2, max_position_embeddings, gpt2.n_positions),
    NUMBER(GPT2, layer_norm_epsilon, gpt2.layer_norm_epsilon),
    NUMBER(GPT2, initializer_range, gpt2.initializer_range),
    TIES(GPT2, gpt2.tie_word_embeddings),
    DROPOUT(GPT2, gpt2.resid_pdrop),
    DROPOUT(GPT2, gpt2.embd_pdrop),
    DROPOUT(GPT2, gpt2.attn_pdrop),
    NUMBER(GPT2, resid_pdrop, gpt2.resid_pdrop),
    NUMBER(GPT2, embd_pdrop, gpt2.embd_pdrop),
    NUMBER(GPT2, attn_pdrop, gpt2.attn_pdrop),

    COUNT(T5, vocab_size, t5.vocab_size),
    COUNT(T5, hidden_size, t5.d_model),
    COUNT(T5, head_dim, t5.d_kv),
    COUNT(T5, intermediate_size, t5.d_ff),
    COUNT(T5, num_hidden_layers, t5.num_layers),
    COUNT(T5, num_attention_heads, t5.num_heads),
    NUMBER(T5, rms_norm_eps, t5.layer_norm_epsilon),
    NUMBER(T5, layer_norm_epsilon, t5.layer_norm_epsilon),
    TIES(T5, t5.tie_word_embeddings),
    DROPOUT(T5, t5.dropout_rate),

    COUNT(BERT, vocab_size, bert.vocab_size),
    COUNT(BERT, hidden_size, bert.hidden_size),
    COUNT(BERT, intermediate_size, bert.intermediate_size),
    COUNT(BERT, num_hidden_layers, bert.num_hidden_layers),
    COUNT(BERT, num_attention_heads, bert.num_attention_heads),
    COUNT(BERT, max_position_embeddings, bert.max_position_embeddings),
    COUNT(BERT, num_labels, bert.num_labels),
    NUMBER(BERT, layer_norm_epsilon, bert.layer_norm_eps),
    NUMBER(BERT, initializer_range, bert.initializer_range),
    DROPOUT(BERT, bert.hidden_dropout_prob),
    DROPOUT(BERT, bert.attention_probs_dropout_prob),
    DROPOUT(BERT, bert.classifier_dropout),
    NUMBER(BERT, attn_pdrop, bert.attention_probs_dropout_prob),
};

bool config_model_has(enum architecture_kind kind, size_t offset)
{
    bool is_listed = false;
    for (size_t i = 0; i < array_length(rows); i++) {
        if (rows[i].given == offset && rows[i].kind == kind)
            return true;
        is_listed |= rows[i].given == offset;
    }
    return !is_listed; /* what is in no row is not a size */
}

static bool is_given(const struct agent_config *c, const struct row *row)
{
    const void *at = (const char *)c + row->given;
    switch (row->take) {
    case TAKE_COUNT:
        return *(const int64_t *)at > 0;
    case TAKE_NUMBER:
        return *(const double *)at >= 0;
    case TAKE_CHOICE:
        return *(const int64_t *)at != CHOOSE_AUTO;
    }
    return false;
}

static void take_one(const struct agent_config *c, const struct row *row, struct architecture *a)
{
    const void *from = (const char *)c + row->given;
    void *to = (char *)a + row->field;
    if (row->take == TAKE_CHOICE)
        *(bool *)to = *(const int64_t *)from == CHOOSE_YES;
    else
        memcpy(to, from, sizeof(int64_t)); /* a double, or an int64_t */
}

static int take_all(const struct agent_config *c, struct architecture *a, struct error *err)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        if (!is_given(c, &rows[i]))
            continue;
        /* AWS's sample passes dropouts to models that have none: config_finish notes it */
        if (!config_model_has(a->kind, rows[i].given) && !strstr(rows[i].key, "drop"))
            return error_set(err, ERR_CONFIG, "%s: a %s has none", rows[i].key,
                             architecture_kind_name(a->kind));
        if (rows[i].kind == a->kind)
            take_one(c, &rows[i], a);
    }
    return 0;
}

/* What follows from another number follows the new one. */
static void forget_derived(const struct agent_config *c, struct architecture *a)
{
    bool reheaded = c->overrides.num_attention_heads > 0;
    if (c->overrides.hidden_size > 0 || reheaded)
        a->llama.head_dim = 0;
    if (reheaded)
        a->llama.num_key_value_heads = 0;
    if (c->overrides.num_hidden_layers > 0)
        a->t5.num_decoder_layers = 0;
}

static int override_rope(const struct agent_config *c, struct architecture *a, struct error *err)
{
    enum rope_type type = (enum rope_type)(c->rope.type - 1);
    bool has_factors = c->rope.factor > 0 || c->rope.low_freq_factor > 0 ||
                       c->rope.high_freq_factor > 0 || c->rope.original_max_position_embeddings > 0;
    if (c->rope.type == 0 && !has_factors)
        return 0;
    if (a->kind != ARCHITECTURE_LLAMA)
        return error_set(err, ERR_CONFIG, "model.rope_scaling: a %s has no rotary positions",
                         architecture_kind_name(a->kind));
    if (c->rope.type == 0)
        return error_set(err, ERR_CONFIG,
                         "model.rope_scaling: numbers without model.rope_scaling.rope_type");
    a->llama.rope = (struct rope){
        .type = type,
        .theta = a->llama.rope.theta,
        .factor = type == ROPE_DEFAULT ? 1 : c->rope.factor,
        .low_freq_factor = c->rope.low_freq_factor,
        .high_freq_factor = c->rope.high_freq_factor,
        .original_max_positions = c->rope.original_max_position_embeddings,
    };
    return 0;
}

static void choose_head(const struct agent_config *c, struct bert_config *bert)
{
    static const enum bert_head heads[] = {
        [HEAD_MASKED_LM] = BERT_MASKED_LM,
        [HEAD_PRETRAINING] = BERT_PRETRAINING,
        [HEAD_SEQUENCE_CLASSIFICATION] = BERT_CLASSIFICATION,
    };
    if (c->model.head >= HEAD_MASKED_LM && c->model.head <= HEAD_SEQUENCE_CLASSIFICATION)
        bert->head = heads[c->model.head];
}

static void override_tokens(const struct agent_config *c, struct architecture *a)
{
    if (c->overrides.bos_token_id >= 0)
        a->bos_token_id = c->overrides.bos_token_id;
    if (c->overrides.pad_token_id >= 0)
        a->pad_token_id = c->overrides.pad_token_id;
    if (c->overrides.eos_token_id >= 0) {
        a->eos_token_ids[0] = c->overrides.eos_token_id;
        a->eos_count = 1;
    }
}

static int unknown_name(const char *name, struct error *err)
{
    auto_str struct str names;
    str_init(&names, 512);
    for (int i = 0; architecture_name(i); i++)
        str_printf(&names, "%s%s", i ? " " : "", architecture_name(i));
    return error_set(err, ERR_CONFIG, "model.architecture: '%s' is not one of: %s", name,
                     str_text(&names));
}

enum architecture_kind config_model_kind(int64_t type)
{
    switch ((enum config_model)type) {
    case MODEL_GPT2:
        return ARCHITECTURE_GPT2;
    case MODEL_T5:
        return ARCHITECTURE_T5;
    case MODEL_BERT:
        return ARCHITECTURE_BERT;
    case MODEL_AUTO:
    case MODEL_MNIST_CNN:
    case MODEL_LLAMA:
    case MODEL_MISTRAL:
        break;
    }
    return ARCHITECTURE_LLAMA;
}

static int override(const struct agent_config *c, struct architecture *a, struct error *err)
{
    forget_derived(c, a);
    if (take_all(c, a, err) || override_rope(c, a, err))
        return -1;
    if (c->model.type == MODEL_MISTRAL)
        a->llama.family = "Mistral";
    choose_head(c, &a->bert);
    override_tokens(c, a);
    return 0;
}

enum config_model config_model_of(enum architecture_kind kind)
{
    static const enum config_model types[] = {[ARCHITECTURE_LLAMA] = MODEL_LLAMA,
                                              [ARCHITECTURE_GPT2] = MODEL_GPT2,
                                              [ARCHITECTURE_T5] = MODEL_T5,
                                              [ARCHITECTURE_BERT] = MODEL_BERT};
    return types[kind];
}

#define BERT_HEADS_TEXT "masked_lm, pretraining or sequence_classification"

/* What each type can learn: a row per head, all of its heads for people. */
static const struct {
    enum config_model type;
    enum config_head head;
    const char *name, *heads;
} learned[] = {
    {MODEL_MNIST_CNN, HEAD_IMAGE_CLASSIFICATION, "mnist_cnn", "image_classification"},
    {MODEL_LLAMA, HEAD_CAUSAL_LM, "llama", "causal_lm"},
    {MODEL_MISTRAL, HEAD_CAUSAL_LM, "mistral", "causal_lm"},
    {MODEL_GPT2, HEAD_CAUSAL_LM, "gpt2", "causal_lm"},
    {MODEL_T5, HEAD_SEQ2SEQ_LM, "t5", "seq2seq_lm"},
    {MODEL_BERT, HEAD_MASKED_LM, "bert", BERT_HEADS_TEXT},
    {MODEL_BERT, HEAD_PRETRAINING, "bert", BERT_HEADS_TEXT},
    {MODEL_BERT, HEAD_SEQUENCE_CLASSIFICATION, "bert", BERT_HEADS_TEXT},
};

int config_check_head(const struct agent_config *config, int64_t type, struct error *err)
{
    static const char *const asked[] = {"auto",
                                        "causal_lm",
                                        "seq2seq_lm",
                                        "masked_lm",
                                        "pretraining",
                                        "sequence_classification",
                                        "image_classification"};
    int64_t head = config->model.head;
    const char *name = "", *heads = "";
    if (head == HEAD_AUTO || type == MODEL_AUTO)
        return 0;
    for (size_t i = 0; i < array_length(learned); i++) {
        if ((int64_t)learned[i].type != type)
            continue;
        if ((int64_t)learned[i].head == head)
            return 0;
        name = learned[i].name, heads = learned[i].heads;
    }
    return error_set(err, ERR_CONFIG, "model.head: %s is not for a %s model: it learns %s",
                     asked[head], name, heads);
}

int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err)
{
    assert(config->model.type != MODEL_MNIST_CNN);
    enum architecture_kind kind = config_model_kind(config->model.type);
    struct architecture a = architecture_default(kind);
    if (config->model.architecture[0]) {
        if (!architecture_find(config->model.architecture, &a))
            return unknown_name(config->model.architecture, err);
    } else if (published) {
        a = *published;
    }
    if (config->model.type != MODEL_AUTO && a.kind != kind)
        return error_set(err, ERR_CONFIG, "model.type: the sizes given are a %s's",
                         architecture_kind_name(a.kind));
    if (config->data.label_names[0])
        a.bert.label_names = config->data.label_names;
    if (override(config, &a, err) || config_check_head(config, config_model_of(a.kind), err) ||
        architecture_check(&a, err))
        return -1;
    *ret_architecture = a;
    return 0;
}
