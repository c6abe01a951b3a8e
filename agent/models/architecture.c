#include "agent/models/architecture.h"

#include <string.h>

/* The published sizes (config.json of each model). hd is D / heads everywhere. */
static const struct row {
    const char *name;
    const char *family;
    int64_t V, D, L, heads, kv_heads, I, positions;
    double theta, eps, llama3_factor; /* llama3_factor: 0: default rope */
    bool tied;
    int64_t bos, eos;
} rows[] = {
    /* clang-format off */
    {"llama2_7b",     "Llama",   32000,  4096,  32,  32,  32, 11008, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama2_13b",    "Llama",   32000,  5120,  40,  40,  40, 13824, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama2_70b",    "Llama",   32000,  8192,  80,  64,  8,  28672, 4096,   1e4, 1e-5, 0,  false, 1, 2},
    {"llama3_8b",     "Llama",   128256, 4096,  32,  32,  8,  14336, 8192,   5e5, 1e-5, 0,  false, 128000, 128001},
    {"llama3_70b",    "Llama",   128256, 8192,  80,  64,  8,  28672, 8192,   5e5, 1e-5, 0,  false, 128000, 128001},
    {"llama3_1_8b",   "Llama",   128256, 4096,  32,  32,  8,  14336, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_1_70b",  "Llama",   128256, 8192,  80,  64,  8,  28672, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_1_405b", "Llama",   128256, 16384, 126, 128, 8,  53248, 131072, 5e5, 1e-5, 8,  false, 128000, 128001},
    {"llama3_2_1b",   "Llama",   128256, 2048,  16,  32,  8,  8192,  131072, 5e5, 1e-5, 32, true,  128000, 128001},
    {"llama3_2_3b",   "Llama",   128256, 3072,  28,  24,  8,  8192,  131072, 5e5, 1e-5, 32, true,  128000, 128001},
    {"mathstral_7b",  "Mistral", 32768,  4096,  32,  32,  8,  14336, 32768,  1e6, 1e-5, 0,  false, 1, 2},
    {"gpt2",          "GPT2",    50257,  768,   12,  12,  12, 3072,  1024,   0,   1e-5, 0,  true,  50256, 50256},
    {"gpt2_medium",   "GPT2",    50257,  1024,  24,  16,  16, 4096,  1024,   0,   1e-5, 0,  true,  50256, 50256},
    {"gpt2_large",    "GPT2",    50257,  1280,  36,  20,  20, 5120,  1024,   0,   1e-5, 0,  true,  50256, 50256},
    {"gpt2_xl",       "GPT2",    50257,  1600,  48,  25,  25, 6400,  1024,   0,   1e-5, 0,  true,  50256, 50256},
    /* clang-format on */
};

struct architecture architecture_default(enum architecture_kind kind)
{
    return (struct architecture){.kind = kind,
                                 .llama = llama_default_config,
                                 .gpt2 = gpt2_default_config,
                                 .bos_token_id = -1,
                                 .pad_token_id = -1};
}

static void fill_gpt2(const struct row *row, struct gpt2_config *gpt2)
{
    gpt2->vocab_size = row->V;
    gpt2->n_positions = row->positions;
    gpt2->n_embd = row->D;
    gpt2->n_layer = row->L;
    gpt2->n_head = row->heads;
    gpt2->layer_norm_epsilon = row->eps;
    gpt2->tie_word_embeddings = row->tied;
}

static void fill_llama(const struct row *row, struct llama_config *llama)
{
    llama->family = row->family;
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
}

bool architecture_find(const char *name, struct architecture *ret_architecture)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        bool is_gpt2 = strcmp(row->family, "GPT2") == 0;
        *ret_architecture = architecture_default(is_gpt2 ? ARCHITECTURE_GPT2 : ARCHITECTURE_LLAMA);
        if (is_gpt2)
            fill_gpt2(row, &ret_architecture->gpt2);
        else
            fill_llama(row, &ret_architecture->llama);
        ret_architecture->bos_token_id = row->bos;
        ret_architecture->eos_token_ids[0] = row->eos;
        ret_architecture->eos_count = 1;
        return true;
    }
    return false;
}

const char *architecture_name(int i)
{
    return i >= 0 && i < (int)array_length(rows) ? rows[i].name : NULL;
}

int architecture_check(const struct architecture *architecture, struct error *err)
{
    return architecture->kind == ARCHITECTURE_GPT2 ? gpt2_check(&architecture->gpt2, err)
                                                   : llama_check(&architecture->llama, err);
}

struct model *architecture_build(struct arena *arena, const struct architecture *architecture)
{
    return architecture->kind == ARCHITECTURE_GPT2 ? model_gpt2_new(arena, &architecture->gpt2)
                                                   : model_llama_new(arena, &architecture->llama);
}
