#include "agent/checkpoint/pretrained_names.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

const char *pretrained_inner_name(const char *name)
{
    /* transformers' base_model_prefix of Llama, GPT-2 and BERT. */
    static const char *const prefixes[] = {"model.", "transformer.", "bert."};
    for (size_t i = 0; i < array_length(prefixes); i++)
        if (str_starts_with(name, prefixes[i]))
            return name + strlen(prefixes[i]);
    return name;
}

const char *pretrained_old_name(const char *name, char *text, size_t size)
{
    /* The names of TensorFlow, from which the first BERT checkpoints were converted. */
    static const char *const ends[][2] = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                                          {".LayerNorm.bias", ".LayerNorm.beta"}};
    for (size_t i = 0; i < array_length(ends); i++)
        if (str_ends_with(name, ends[i][0])) {
            snprintf(text, size, "%.*s%s", (int)(strlen(name) - strlen(ends[i][0])), name,
                     ends[i][1]);
            return text;
        }
    return NULL;
}

bool pretrained_is_buffer(const char *name)
{
    /* What old versions of transformers saved beside parameters: masks, frequencies and positions
     * that a model computes itself. And a bias of T5's cross attention that no model uses. */
    static const char *const ends[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq",
                                       "embeddings.position_ids",
                                       ".EncDecAttention.relative_attention_bias.weight"};
    for (size_t i = 0; i < array_length(ends); i++)
        if (str_ends_with(name, ends[i]))
            return true;
    return false;
}
