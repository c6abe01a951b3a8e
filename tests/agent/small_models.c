#include "tests/agent/small_models.h"
#include "agent/models/families.h"

#include <string.h>

static struct architecture small_t5(bool tied)
{
    struct architecture a = architecture_default(&family_t5);
    a.t5.vocab_size = 61;
    a.t5.d_model = 48;
    a.t5.d_kv = 10;
    a.t5.d_ff = 80;
    a.t5.num_layers = 3;
    a.t5.num_heads = 6;
    a.t5.tie_word_embeddings = tied;
    if (!tied) {
        a.t5.feed_forward_proj = T5_GATED_GELU;
        a.t5.num_decoder_layers = 2;
    }
    return a;
}

static struct architecture small_bert(const char *class_name)
{
    struct architecture a = architecture_default(&family_bert);
    while (strcmp(bert_class_name(a.bert.head), class_name) != 0)
        a.bert.head++;
    a.bert.vocab_size = 61;
    a.bert.hidden_size = 48;
    a.bert.num_hidden_layers = 3;
    a.bert.num_attention_heads = 6;
    a.bert.intermediate_size = 80;
    a.bert.max_position_embeddings = 64;
    a.bert.gelu_tanh = a.bert.head == BERT_PRETRAINING;
    if (a.bert.head == BERT_CLASSIFICATION) {
        a.bert.num_labels = 5;
        a.bert.classifier_dropout = 0.2;
    }
    return a;
}

struct architecture small_model(const char *family, bool tied)
{
    if (strcmp(family, "T5") == 0)
        return small_t5(tied);
    if (strncmp(family, "Bert", 4) == 0)
        return small_bert(family);
    struct architecture a = architecture_default(strcmp(family, "GPT2") == 0      ? &family_gpt2
                                                 : strcmp(family, "Mistral") == 0 ? &family_mistral
                                                                                  : &family_llama);
    a.llama.vocab_size = a.gpt2.vocab_size = 61;
    a.llama.hidden_size = a.gpt2.n_embd = 48;
    a.llama.intermediate_size = 80;
    a.llama.num_hidden_layers = a.gpt2.n_layer = 3;
    a.llama.num_attention_heads = 6;
    a.llama.num_key_value_heads = 2;
    a.llama.attention_bias = a.llama.mlp_bias = tied;
    a.llama.tie_word_embeddings = a.gpt2.tie_word_embeddings = tied;
    a.llama.max_position_embeddings = a.gpt2.n_positions = 64;
    a.gpt2.n_head = 3;
    if (strcmp(family, "Mistral") == 0)
        a.pad_token_id = 2;
    return a;
}
