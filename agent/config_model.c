#include "agent/config_model.h"

#include <assert.h>
#include <string.h>

static void take_count(int64_t given, int64_t *field)
{
    if (given > 0)
        *field = given;
}

static void take_number(double given, double *field)
{
    if (given >= 0)
        *field = given;
}

static void take_choice(int64_t given, bool *field)
{
    if (given != CHOOSE_AUTO)
        *field = given == CHOOSE_YES;
}

static void override_rope(const struct agent_config *c, struct rope *rope)
{
    take_number(c->overrides.rope_theta, &rope->theta);
    if (c->rope.type == 0)
        return;
    *rope = (struct rope){
        .type = (enum rope_type)(c->rope.type - 1),
        .theta = rope->theta,
        .factor = c->rope.type - 1 == ROPE_DEFAULT ? 1 : c->rope.factor,
        .low_freq_factor = c->rope.low_freq_factor,
        .high_freq_factor = c->rope.high_freq_factor,
        .original_max_positions = c->rope.original_max_position_embeddings,
    };
}

static void override_llama(const struct agent_config *c, struct llama_config *llama)
{
    bool resized = c->overrides.hidden_size > 0 || c->overrides.num_attention_heads > 0;
    /* What follows from another number follows the new one. */
    if (resized && c->overrides.head_dim == 0)
        llama->head_dim = 0;
    if (c->overrides.num_attention_heads > 0 && c->overrides.num_key_value_heads == 0)
        llama->num_key_value_heads = 0;
    if (c->model.type == MODEL_MISTRAL)
        llama->family = "Mistral";
    take_count(c->overrides.vocab_size, &llama->vocab_size);
    take_count(c->overrides.hidden_size, &llama->hidden_size);
    take_count(c->overrides.intermediate_size, &llama->intermediate_size);
    take_count(c->overrides.num_hidden_layers, &llama->num_hidden_layers);
    take_count(c->overrides.num_attention_heads, &llama->num_attention_heads);
    take_count(c->overrides.num_key_value_heads, &llama->num_key_value_heads);
    take_count(c->overrides.head_dim, &llama->head_dim);
    take_count(c->overrides.max_position_embeddings, &llama->max_position_embeddings);
    take_number(c->overrides.rms_norm_eps, &llama->rms_norm_eps);
    take_number(c->overrides.initializer_range, &llama->initializer_range);
    take_choice(c->overrides.tie_word_embeddings, &llama->tie_word_embeddings);
    override_rope(c, &llama->rope);
}

static void override_gpt2(const struct agent_config *c, struct gpt2_config *gpt2)
{
    take_count(c->overrides.vocab_size, &gpt2->vocab_size);
    take_count(c->overrides.hidden_size, &gpt2->n_embd);
    take_count(c->overrides.intermediate_size, &gpt2->n_inner);
    take_count(c->overrides.num_hidden_layers, &gpt2->n_layer);
    take_count(c->overrides.num_attention_heads, &gpt2->n_head);
    take_count(c->overrides.max_position_embeddings, &gpt2->n_positions);
    take_number(c->overrides.layer_norm_epsilon, &gpt2->layer_norm_epsilon);
    take_number(c->overrides.initializer_range, &gpt2->initializer_range);
    take_choice(c->overrides.tie_word_embeddings, &gpt2->tie_word_embeddings);
    take_number(c->model.dropout, &gpt2->resid_pdrop);
    take_number(c->model.dropout, &gpt2->embd_pdrop);
    take_number(c->model.dropout, &gpt2->attn_pdrop);
    take_number(c->overrides.resid_pdrop, &gpt2->resid_pdrop);
    take_number(c->overrides.embd_pdrop, &gpt2->embd_pdrop);
    take_number(c->overrides.attn_pdrop, &gpt2->attn_pdrop);
}

static void override_t5(const struct agent_config *c, struct t5_config *t5)
{
    take_count(c->overrides.vocab_size, &t5->vocab_size);
    take_count(c->overrides.hidden_size, &t5->d_model);
    take_count(c->overrides.head_dim, &t5->d_kv);
    take_count(c->overrides.intermediate_size, &t5->d_ff);
    if (c->overrides.num_hidden_layers > 0)
        t5->num_decoder_layers = 0;
    take_count(c->overrides.num_hidden_layers, &t5->num_layers);
    take_count(c->overrides.num_attention_heads, &t5->num_heads);
    take_number(c->overrides.rms_norm_eps, &t5->layer_norm_epsilon);
    take_number(c->overrides.layer_norm_epsilon, &t5->layer_norm_epsilon);
    take_number(c->model.dropout, &t5->dropout_rate);
    take_choice(c->overrides.tie_word_embeddings, &t5->tie_word_embeddings);
}

static void override_bert(const struct agent_config *c, struct bert_config *bert)
{
    static const enum bert_head heads[] = {
        [HEAD_MASKED_LM] = BERT_MASKED_LM,
        [HEAD_PRETRAINING] = BERT_PRETRAINING,
        [HEAD_SEQUENCE_CLASSIFICATION] = BERT_CLASSIFICATION,
    };
    if (c->model.head >= HEAD_MASKED_LM && c->model.head <= HEAD_SEQUENCE_CLASSIFICATION)
        bert->head = heads[c->model.head];
    take_count(c->overrides.vocab_size, &bert->vocab_size);
    take_count(c->overrides.hidden_size, &bert->hidden_size);
    take_count(c->overrides.intermediate_size, &bert->intermediate_size);
    take_count(c->overrides.num_hidden_layers, &bert->num_hidden_layers);
    take_count(c->overrides.num_attention_heads, &bert->num_attention_heads);
    take_count(c->overrides.max_position_embeddings, &bert->max_position_embeddings);
    take_count(c->overrides.num_labels, &bert->num_labels);
    take_number(c->overrides.layer_norm_epsilon, &bert->layer_norm_eps);
    take_number(c->overrides.initializer_range, &bert->initializer_range);
    take_number(c->model.dropout, &bert->hidden_dropout_prob);
    take_number(c->model.dropout, &bert->attention_probs_dropout_prob);
    take_number(c->overrides.attn_pdrop, &bert->attention_probs_dropout_prob);
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

static enum architecture_kind kind_of(int64_t type)
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

static void override(const struct agent_config *c, struct architecture *a)
{
    switch (a->kind) {
    case ARCHITECTURE_LLAMA:
        override_llama(c, &a->llama);
        break;
    case ARCHITECTURE_GPT2:
        override_gpt2(c, &a->gpt2);
        break;
    case ARCHITECTURE_T5:
        override_t5(c, &a->t5);
        break;
    case ARCHITECTURE_BERT:
        override_bert(c, &a->bert);
        break;
    case ARCHITECTURE_KINDS:
        break;
    }
    override_tokens(c, a);
}

int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err)
{
    assert(config->model.type != MODEL_MNIST_CNN);
    enum architecture_kind kind = kind_of(config->model.type);
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
    override(config, &a);
    if (architecture_check(&a, err))
        return -1;
    *ret_architecture = a;
    return 0;
}
