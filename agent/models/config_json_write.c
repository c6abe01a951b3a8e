/* config.json as transformers 4 and 5 read it. */
#include "agent/models/config_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_integer(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static void set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real(value));
}

static void set_text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}

static void set_bool(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

/* The special tokens that there are. */
static void set_tokens(json_t *object, const struct architecture *a)
{
    if (a->bos_token_id >= 0)
        set_integer(object, "bos_token_id", a->bos_token_id);
    if (a->pad_token_id >= 0)
        set_integer(object, "pad_token_id", a->pad_token_id);
    json_t *list = json_array();
    for (int i = 0; i < a->eos_count; i++)
        json_array_append_new(list, json_integer(a->eos_token_ids[i]));
    if (a->eos_count > 1)
        json_object_set(object, "eos_token_id", list);
    else if (a->eos_count == 1)
        set_integer(object, "eos_token_id", a->eos_token_ids[0]);
    json_decref(list);
}

static json_t *rope_scaling(const struct rope *rope)
{
    json_t *object = json_object();
    set_text(object, "rope_type", rope_type_name(rope->type));
    set_text(object, "type", rope_type_name(rope->type)); /* transformers before 4.43 */
    set_real(object, "factor", rope->factor);
    if (rope->type == ROPE_LLAMA3) {
        set_real(object, "low_freq_factor", rope->low_freq_factor);
        set_real(object, "high_freq_factor", rope->high_freq_factor);
        set_integer(object, "original_max_position_embeddings", rope->original_max_positions);
    }
    return object;
}

static void set_llama(json_t *object, const struct llama_config *c)
{
    bool mistral = strcmp(c->family, "Mistral") == 0;
    set_text(object, "model_type", mistral ? "mistral" : "llama");
    json_object_set_new(object, "architectures",
                        json_pack("[s]", mistral ? "MistralForCausalLM" : "LlamaForCausalLM"));
    set_integer(object, "vocab_size", c->vocab_size);
    set_integer(object, "hidden_size", c->hidden_size);
    set_integer(object, "intermediate_size", c->intermediate_size);
    set_integer(object, "num_hidden_layers", c->num_hidden_layers);
    set_integer(object, "num_attention_heads", c->num_attention_heads);
    set_integer(object, "num_key_value_heads", llama_kv_heads(c));
    set_integer(object, "head_dim", llama_head_dim(c));
    set_integer(object, "max_position_embeddings", c->max_position_embeddings);
    set_text(object, "hidden_act", "silu");
    set_real(object, "initializer_range", c->initializer_range);
    set_real(object, "rms_norm_eps", c->rms_norm_eps);
    set_real(object, "rope_theta", c->rope.theta);
    json_object_set_new(object, "rope_scaling",
                        c->rope.type == ROPE_DEFAULT ? json_null() : rope_scaling(&c->rope));
    set_real(object, "attention_dropout", c->attention_dropout);
    set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
    if (mistral) {
        json_object_set_new(object, "sliding_window",
                            c->sliding_window ? json_integer(c->sliding_window) : json_null());
        return;
    }
    set_bool(object, "attention_bias", c->attention_bias);
    set_bool(object, "mlp_bias", c->mlp_bias);
}

static void set_gpt2(json_t *object, const struct gpt2_config *c)
{
    set_text(object, "model_type", "gpt2");
    json_object_set_new(object, "architectures", json_pack("[s]", "GPT2LMHeadModel"));
    set_integer(object, "vocab_size", c->vocab_size);
    set_integer(object, "n_positions", c->n_positions);
    set_integer(object, "n_ctx", c->n_positions);
    set_integer(object, "n_embd", c->n_embd);
    set_integer(object, "n_layer", c->n_layer);
    set_integer(object, "n_head", c->n_head);
    json_object_set_new(object, "n_inner", c->n_inner ? json_integer(c->n_inner) : json_null());
    set_text(object, "activation_function", c->gelu_tanh ? "gelu_new" : "gelu");
    set_real(object, "layer_norm_epsilon", c->layer_norm_epsilon);
    set_real(object, "initializer_range", c->initializer_range);
    set_real(object, "embd_pdrop", c->embd_pdrop);
    set_real(object, "attn_pdrop", c->attn_pdrop);
    set_real(object, "resid_pdrop", c->resid_pdrop);
    set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
}

static void set_t5(json_t *object, const struct t5_config *c)
{
    set_text(object, "model_type", "t5");
    json_object_set_new(object, "architectures", json_pack("[s]", "T5ForConditionalGeneration"));
    set_integer(object, "vocab_size", c->vocab_size);
    set_integer(object, "d_model", c->d_model);
    set_integer(object, "d_kv", c->d_kv);
    set_integer(object, "d_ff", c->d_ff);
    set_integer(object, "num_layers", c->num_layers);
    set_integer(object, "num_decoder_layers", t5_decoder_layers(c));
    set_integer(object, "num_heads", c->num_heads);
    set_integer(object, "relative_attention_num_buckets", c->relative_attention_num_buckets);
    set_integer(object, "relative_attention_max_distance", c->relative_attention_max_distance);
    set_integer(object, "decoder_start_token_id", c->decoder_start_token_id);
    set_real(object, "dropout_rate", c->dropout_rate);
    set_real(object, "layer_norm_epsilon", c->layer_norm_epsilon);
    set_real(object, "initializer_factor", c->initializer_factor);
    set_text(object, "feed_forward_proj", t5_feed_forward_name(c->feed_forward_proj));
    set_bool(object, "tie_word_embeddings", c->tie_word_embeddings);
    set_bool(object, "scale_decoder_outputs", t5_scales(c));
    set_bool(object, "is_encoder_decoder", true);
}

static int64_t count_names(const char *list)
{
    int64_t count = list && list[0] ? 1 : 0;
    for (const char *c = list; count && *c; c++)
        count += *c == ',';
    return count;
}

/* list: of names, separated by commas; else, if they are not so many, labels have numbers for
 * names: what they mean is the data's. */
static void set_labels(json_t *object, int64_t count, const char *list)
{
    json_t *names = json_object(), *ids = json_object();
    const char *rest = count_names(list) == count ? list : NULL;
    for (int64_t i = 0; i < count; i++) {
        char id[24], number[32];
        snprintf(id, sizeof id, "%lld", (long long)i);
        snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
        size_t length = rest ? strcspn(rest, ",") : 0;
        auto_free char *name = rest ? xasprintf("%.*s", (int)length, rest) : xstrdup(number);
        set_text(names, id, name);
        set_integer(ids, name, i);
        if (rest)
            rest += length + (rest[length] == ',');
    }
    json_object_set_new(object, "id2label", names);
    json_object_set_new(object, "label2id", ids);
    set_text(object, "problem_type", "single_label_classification");
}

static void set_bert(json_t *object, const struct bert_config *c)
{
    set_text(object, "model_type", "bert");
    json_object_set_new(object, "architectures", json_pack("[s]", bert_class_name(c->head)));
    set_integer(object, "vocab_size", c->vocab_size);
    set_integer(object, "hidden_size", c->hidden_size);
    set_integer(object, "num_hidden_layers", c->num_hidden_layers);
    set_integer(object, "num_attention_heads", c->num_attention_heads);
    set_integer(object, "intermediate_size", c->intermediate_size);
    set_text(object, "hidden_act", c->gelu_tanh ? "gelu_new" : "gelu");
    set_real(object, "hidden_dropout_prob", c->hidden_dropout_prob);
    set_real(object, "attention_probs_dropout_prob", c->attention_probs_dropout_prob);
    json_object_set_new(object, "classifier_dropout",
                        c->classifier_dropout < 0 ? json_null() : json_real(c->classifier_dropout));
    set_integer(object, "max_position_embeddings", c->max_position_embeddings);
    set_integer(object, "type_vocab_size", c->type_vocab_size);
    set_real(object, "initializer_range", c->initializer_range);
    set_real(object, "layer_norm_eps", c->layer_norm_eps);
    set_text(object, "position_embedding_type", "absolute");
    if (c->head == BERT_CLASSIFICATION)
        set_labels(object, c->num_labels, c->label_names);
}

/* Keys in their order, numbers as short as they are exact for people. Consumes the object. */
static void write(json_t *object, struct str *out)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    str_add(out, text);
    str_add(out, "\n");
    free(text);
    json_decref(object);
}

void config_json_write(const struct architecture *architecture, const char *dtype, struct str *out)
{
    json_t *object = json_object();
    switch (architecture->kind) {
    case ARCHITECTURE_GPT2:
        set_gpt2(object, &architecture->gpt2);
        break;
    case ARCHITECTURE_T5:
        set_t5(object, &architecture->t5);
        break;
    case ARCHITECTURE_BERT:
        set_bert(object, &architecture->bert);
        break;
    default:
        set_llama(object, &architecture->llama);
    }
    set_tokens(object, architecture);
    set_text(object, "torch_dtype", dtype);
    write(object, out);
}

void config_json_write_generation(const struct architecture *architecture, struct str *out)
{
    json_t *object = json_object();
    set_tokens(object, architecture);
    if (architecture->kind == ARCHITECTURE_T5)
        set_integer(object, "decoder_start_token_id", architecture->t5.decoder_start_token_id);
    write(object, out);
}
