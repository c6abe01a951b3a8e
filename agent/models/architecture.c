#include "agent/models/architecture.h"

#include "agent/models/language.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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

/* The same of T5 (32128 tokens) and BERT. */
static const struct t5_row {
    const char *name;
    int64_t d_model, d_kv, d_ff, L, heads;
    bool v1_1; /* gated, and with a head of its own */
} t5_rows[] = {
    /* clang-format off */
    {"t5_small",       512,  64,  2048,  6,  8,   false},
    {"t5_base",        768,  64,  3072,  12, 12,  false},
    {"t5_large",       1024, 64,  4096,  24, 16,  false},
    {"t5_3b",          1024, 128, 16384, 24, 32,  false},
    {"t5_11b",         1024, 128, 65536, 24, 128, false},
    {"t5_v1_1_small",  512,  64,  1024,  8,  6,   true},
    {"t5_v1_1_base",   768,  64,  2048,  12, 12,  true},
    {"t5_v1_1_large",  1024, 64,  2816,  24, 16,  true},
    {"t5_v1_1_xl",     2048, 64,  5120,  24, 32,  true},
    {"t5_v1_1_xxl",    4096, 64,  10240, 24, 64,  true},
    /* clang-format on */
};

static const struct bert_row {
    const char *name;
    int64_t V, D, L, heads, I;
} bert_rows[] = {
    /* clang-format off */
    {"bert_base_uncased",  30522, 768,  12, 12, 3072},
    {"bert_base_cased",    28996, 768,  12, 12, 3072},
    {"bert_large_uncased", 30522, 1024, 24, 16, 4096},
    {"bert_large_cased",   28996, 1024, 24, 16, 4096},
    /* clang-format on */
};

const char *architecture_kind_name(enum architecture_kind kind)
{
    static const char *const names[] = {[ARCHITECTURE_LLAMA] = "llama",
                                        [ARCHITECTURE_GPT2] = "gpt2",
                                        [ARCHITECTURE_T5] = "t5",
                                        [ARCHITECTURE_BERT] = "bert"};
    return names[kind];
}

struct architecture architecture_default(enum architecture_kind kind)
{
    struct architecture a = {.kind = kind,
                             .llama = llama_default_config,
                             .gpt2 = gpt2_default_config,
                             .t5 = t5_default_config,
                             .bert = bert_default_config,
                             .bos_token_id = -1,
                             .pad_token_id = -1};
    if (kind == ARCHITECTURE_T5 || kind == ARCHITECTURE_BERT)
        a.pad_token_id = 0;
    if (kind == ARCHITECTURE_T5) {
        a.eos_token_ids[0] = 1;
        a.eos_count = 1;
    }
    return a;
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

static struct architecture from_row(const struct row *row)
{
    bool is_gpt2 = strcmp(row->family, "GPT2") == 0;
    struct architecture a = architecture_default(is_gpt2 ? ARCHITECTURE_GPT2 : ARCHITECTURE_LLAMA);
    if (is_gpt2)
        fill_gpt2(row, &a.gpt2);
    else
        fill_llama(row, &a.llama);
    a.bos_token_id = row->bos;
    a.eos_token_ids[0] = row->eos;
    a.eos_count = 1;
    return a;
}

static struct architecture from_t5_row(const struct t5_row *row)
{
    struct architecture a = architecture_default(ARCHITECTURE_T5);
    a.t5.d_model = row->d_model;
    a.t5.d_kv = row->d_kv;
    a.t5.d_ff = row->d_ff;
    a.t5.num_layers = row->L;
    a.t5.num_heads = row->heads;
    a.t5.feed_forward_proj = row->v1_1 ? T5_GATED_GELU : T5_RELU;
    a.t5.tie_word_embeddings = !row->v1_1;
    return a;
}

static struct architecture from_bert_row(const struct bert_row *row)
{
    struct architecture a = architecture_default(ARCHITECTURE_BERT);
    a.bert.vocab_size = row->V;
    a.bert.hidden_size = row->D;
    a.bert.num_hidden_layers = row->L;
    a.bert.num_attention_heads = row->heads;
    a.bert.intermediate_size = row->I;
    return a;
}

static const char *next_sign(const char *text)
{
    while (*text && !isalnum((unsigned char)*text))
        text++;
    return text;
}

/* Whether the name is the table's, whoever published it and however it writes hyphens and capitals:
 * "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-2-7b-hf". */
static bool is_name(const char *name, const char *row)
{
    name = str_after_last(name, '/');
    if (strncasecmp(name, "meta-", 5) == 0)
        name += 5;
    for (name = next_sign(name), row = next_sign(row); *row;
         name = next_sign(name + 1), row = next_sign(row + 1))
        if (tolower((unsigned char)*name) != tolower((unsigned char)*row))
            return false;
    return !*name || strcasecmp(name, "hf") == 0 || strcasecmp(name, "instruct") == 0;
}

bool architecture_find(const char *name, struct architecture *ret_architecture)
{
    for (size_t i = 0; i < array_length(rows); i++)
        if (is_name(name, rows[i].name)) {
            *ret_architecture = from_row(&rows[i]);
            return true;
        }
    for (size_t i = 0; i < array_length(t5_rows); i++)
        if (is_name(name, t5_rows[i].name)) {
            *ret_architecture = from_t5_row(&t5_rows[i]);
            return true;
        }
    for (size_t i = 0; i < array_length(bert_rows); i++)
        if (is_name(name, bert_rows[i].name)) {
            *ret_architecture = from_bert_row(&bert_rows[i]);
            return true;
        }
    return false;
}

const char *architecture_name(int i)
{
    int count = array_length(rows), t5_count = array_length(t5_rows);
    if (i >= 0 && i < count)
        return rows[i].name;
    if (i >= count && i < count + t5_count)
        return t5_rows[i - count].name;
    i -= count + t5_count;
    return i >= 0 && i < (int)array_length(bert_rows) ? bert_rows[i].name : NULL;
}

/* It is a row of the table of embeddings. */
static int check_pad(const char *family, const struct architecture *a, int64_t V, struct error *err)
{
    return language_check_field(family, "pad_token_id", a->pad_token_id, -1, V - 1, err);
}

int architecture_check(const struct architecture *a, struct error *err)
{
    switch (a->kind) {
    case ARCHITECTURE_GPT2:
        return gpt2_check(&a->gpt2, err);
    case ARCHITECTURE_T5:
        return t5_check(&a->t5, err);
    case ARCHITECTURE_BERT:
        return bert_check(&a->bert, err) < 0 ? -1 : check_pad("BERT", a, a->bert.vocab_size, err);
    default:
        return llama_check(&a->llama, err) < 0
                   ? -1
                   : check_pad(a->llama.family, a, a->llama.vocab_size, err);
    }
}

struct model *architecture_build(struct arena *arena, const struct architecture *a)
{
    switch (a->kind) {
    case ARCHITECTURE_GPT2:
        return model_gpt2_new(arena, &a->gpt2);
    case ARCHITECTURE_T5:
        return model_t5_new(arena, &a->t5, a->pad_token_id < 0 ? 0 : a->pad_token_id);
    case ARCHITECTURE_BERT:
        return model_bert_new(arena, &a->bert, a->pad_token_id);
    default:
        return model_llama_new(arena, &a->llama, a->pad_token_id);
    }
}
