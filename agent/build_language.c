/* The language model that the configuration means: config.json, or the kind's defaults, changed
 * field by field. */
#include "agent/build.h"
#include "agent/models/config_json.h"
#include "base/file.h"

#define TAKE(field, value)                                                                         \
    do {                                                                                           \
        if ((value) > 0)                                                                           \
            (field) = (value);                                                                     \
    } while (0)
#define TAKE_FROM_0(field, value)                                                                  \
    do {                                                                                           \
        if ((value) >= 0)                                                                          \
            (field) = (value);                                                                     \
    } while (0)

static bool chosen(int64_t choice, bool otherwise)
{
    return choice == CHOOSE_AUTO ? otherwise : choice == CHOOSE_YES;
}

static void override_rope(const struct agent_config *c, struct rope *rope)
{
    if (c->rope.type != ROPE_FROM_CONFIG)
        rope->type = (enum rope_type)(c->rope.type - CONFIG_ROPE_DEFAULT);
    TAKE(rope->theta, c->overrides.rope_theta);
    TAKE(rope->factor, c->rope.factor);
    TAKE(rope->low_freq_factor, c->rope.low_freq_factor);
    TAKE(rope->high_freq_factor, c->rope.high_freq_factor);
    TAKE(rope->original_max_positions, c->rope.original_max_position_embeddings);
}

static void override_llama(const struct agent_config *c, struct llama_config *m)
{
    TAKE(m->vocab_size, c->overrides.vocab_size);
    TAKE(m->hidden_size, c->overrides.hidden_size);
    TAKE(m->intermediate_size, c->overrides.intermediate_size);
    TAKE(m->num_hidden_layers, c->overrides.num_hidden_layers);
    if (c->overrides.num_attention_heads > 0) { /* what depends on it is as for a new model */
        m->num_attention_heads = c->overrides.num_attention_heads;
        m->num_key_value_heads = m->head_dim = 0;
    }
    TAKE(m->num_key_value_heads, c->overrides.num_key_value_heads);
    TAKE(m->head_dim, c->overrides.head_dim);
    TAKE(m->max_position_embeddings, c->overrides.max_position_embeddings);
    TAKE_FROM_0(m->rms_norm_eps, c->overrides.rms_norm_eps);
    TAKE_FROM_0(m->initializer_range, c->overrides.initializer_range);
    m->tie_word_embeddings = chosen(c->overrides.tie_word_embeddings, m->tie_word_embeddings);
    override_rope(c, &m->rope);
}

static void override_gpt2(const struct agent_config *c, struct gpt2_config *m)
{
    TAKE(m->vocab_size, c->overrides.vocab_size);
    TAKE(m->n_embd, c->overrides.hidden_size);
    TAKE(m->n_inner, c->overrides.intermediate_size);
    TAKE(m->n_layer, c->overrides.num_hidden_layers);
    TAKE(m->n_head, c->overrides.num_attention_heads);
    TAKE(m->n_positions, c->overrides.max_position_embeddings);
    TAKE_FROM_0(m->layer_norm_epsilon, c->overrides.layer_norm_epsilon);
    TAKE_FROM_0(m->initializer_range, c->overrides.initializer_range);
    if (c->model.dropout >= 0)
        m->resid_pdrop = m->embd_pdrop = m->attn_pdrop = c->model.dropout;
    TAKE_FROM_0(m->resid_pdrop, c->overrides.resid_pdrop);
    TAKE_FROM_0(m->embd_pdrop, c->overrides.embd_pdrop);
    TAKE_FROM_0(m->attn_pdrop, c->overrides.attn_pdrop);
    m->tie_word_embeddings = chosen(c->overrides.tie_word_embeddings, m->tie_word_embeddings);
}

static int read_config(const char *directory, struct arena *arena, struct architecture *a,
                       struct error *err)
{
    const char *path = arena_printf(arena, "%s/config.json", directory);
    auto_free char *text = NULL;
    size_t bytes;
    struct lines notes;
    lines_init(&notes, arena);
    if (file_read(path, CONFIG_JSON_MAX_BYTES, &text, &bytes, err) ||
        config_json_read(arena, path, text, bytes, a, &notes, err))
        return error_wrap(err, "model.name_or_path");
    return 0;
}

int build_architecture(const struct agent_config *c, struct arena *arena,
                       struct architecture *ret_architecture, struct error *err)
{
    struct architecture *a = ret_architecture;
    *a = architecture_default(c->model.type == MODEL_GPT2 ? ARCHITECTURE_GPT2 : ARCHITECTURE_LLAMA);
    if (c->model.name_or_path[0] && read_config(c->model.name_or_path, arena, a, err))
        return -1;
    if (a->kind == ARCHITECTURE_LLAMA)
        override_llama(c, &a->llama);
    else
        override_gpt2(c, &a->gpt2);
    TAKE_FROM_0(a->bos_token_id, c->overrides.bos_token_id);
    TAKE_FROM_0(a->pad_token_id, c->overrides.pad_token_id);
    if (c->overrides.eos_token_id >= 0) {
        a->eos_token_ids[0] = c->overrides.eos_token_id;
        a->eos_count = 1;
    }
    return architecture_check(a, err);
}
