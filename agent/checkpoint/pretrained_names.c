#include "agent/checkpoint/pretrained_names.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

const char *pretrained_inner_name(const char *name)
{
    static const char *const prefixes[] = {"model.", "transformer.", "bert."};
    for (size_t i = 0; i < array_length(prefixes); i++)
        if (str_starts_with(name, prefixes[i]))
            return name + strlen(prefixes[i]);
    return name;
}

const char *pretrained_old_name(const char *name, char *text, size_t size)
{
    static const char *const ends[][2] = {{".LayerNorm.weight", ".LayerNorm.gamma"},
                                          {".LayerNorm.bias", ".LayerNorm.beta"}};
    for (size_t i = 0; i < array_length(ends); i++)
        if (ends_with(name, ends[i][0])) {
            snprintf(text, size, "%.*s%s", (int)(strlen(name) - strlen(ends[i][0])), name,
                     ends[i][1]);
            return text;
        }
    return NULL;
}

bool pretrained_is_buffer(const char *name)
{
    static const char *const ends[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq",
                                       "embeddings.position_ids",
                                       ".EncDecAttention.relative_attention_bias.weight"};
    for (size_t i = 0; i < array_length(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}
