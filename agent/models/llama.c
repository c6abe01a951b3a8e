#include "agent/models/llama.h"

#include "agent/models/language.h"
#include "agent/nn/nn.h"

const struct llama_config llama_default_config = {
    .family = "Llama",
    .vocab_size = 32000,
    .hidden_size = 4096,
    .intermediate_size = 11008,
    .num_hidden_layers = 32,
    .num_attention_heads = 32,
    .max_position_embeddings = 2048,
    .initializer_range = 0.02,
    .rms_norm_eps = 1e-6,
    .rope = {.type = ROPE_DEFAULT, .theta = 10000, .factor = 1},
};

/* The modules of one layer. */
struct layer {
    struct llama *llama;
    uint64_t dropout; /* names its random numbers */
    struct module *block, *input_norm, *post_attention_norm;
    struct module *attention, *q, *k, *v, *o;
    struct module *mlp, *gate, *up, *down;
};

struct llama {
    struct model model; /* first: forward() gets a pointer to it */
    struct arena *arena;
    struct llama_config config;
    struct nn_heads heads;
    struct module *inner, *embedding, *norm, *head;
    struct layer *layers;
    struct rope_tables tables;
    const float *cos, *sin; /* of the pass, on its device */
};

int64_t llama_kv_heads(const struct llama_config *config)
{
    return config->num_key_value_heads ? config->num_key_value_heads : config->num_attention_heads;
}

int64_t llama_head_dim(const struct llama_config *config)
{
    return config->head_dim ? config->head_dim : config->hidden_size / config->num_attention_heads;
}

int llama_check(const struct llama_config *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } fields[] = {
        {"vocab_size", config->vocab_size, 1, INT32_MAX},
        {"hidden_size", config->hidden_size, 1, LANGUAGE_MAX_WIDTH},
        {"intermediate_size", config->intermediate_size, 1, LANGUAGE_MAX_WIDTH},
        {"num_hidden_layers", config->num_hidden_layers, 1, MODULE_MAX_CHILDREN},
        {"num_attention_heads", config->num_attention_heads, 1, config->hidden_size},
        {"num_key_value_heads", config->num_key_value_heads, 0, config->num_attention_heads},
        {"head_dim", config->head_dim, 0, LANGUAGE_MAX_WIDTH},
        {"max_position_embeddings", config->max_position_embeddings, 1, LANGUAGE_MAX_TOKENS},
    };
    for (size_t i = 0; i < array_length(fields); i++)
        if (language_check_field(config->family, fields[i].name, fields[i].value, fields[i].low,
                                 fields[i].high, err) < 0)
            return -1;
    if (!config->head_dim && config->hidden_size % config->num_attention_heads)
        return error_set(err, ERR_CONFIG,
                         "%s model: num_attention_heads %lld does not divide hidden_size %lld and "
                         "head_dim is not given",
                         config->family, (long long)config->num_attention_heads,
                         (long long)config->hidden_size);
    if (config->num_attention_heads % llama_kv_heads(config))
        return error_set(err, ERR_CONFIG,
                         "%s model: num_key_value_heads %lld does not divide num_attention_heads "
                         "%lld",
                         config->family, (long long)config->num_key_value_heads,
                         (long long)config->num_attention_heads);
    if (llama_head_dim(config) % 2)
        return error_set(err, ERR_CONFIG,
                         "%s model: head_dim %lld is odd: rotary positions turn pairs",
                         config->family, (long long)llama_head_dim(config));
    return 0;
}

/* ---- forward ---- */

static struct tensor *attention(struct tape *tape, const struct layer *layer, struct tensor *x)
{
    const struct llama *net = layer->llama;
    const struct nn_heads *h = &net->heads;

    tape_enter(tape, layer->attention);
    /* Three products into one tensor, side by side: rope and attention read it as it lies, without
     * any copy. */
    struct tensor *qkv = nn_linears(tape, (struct module *[]){layer->q, layer->k, layer->v}, 3, x,
                                    "queries, keys and values");
    qkv = nn_rope(tape, qkv, h, net->cos, net->sin);
    struct nn_attention_how how = nn_attention_causal(h);
    how.dropout = (float)net->config.attention_dropout;
    how.layer = layer->dropout;
    x = nn_attention(tape, qkv, NULL, h, &how);
    x = nn_linear(tape, layer->o, x, false);
    tape_leave(tape, layer->attention);
    return x;
}

static struct tensor *mlp(struct tape *tape, const struct layer *layer, struct tensor *x)
{
    tape_enter(tape, layer->mlp);
    struct tensor *gate_up =
        nn_linears(tape, (struct module *[]){layer->gate, layer->up}, 2, x, "gate and up");
    /* down(silu(gate(x)) * up(x)) (Shazeer 2020) */
    x = nn_swiglu(tape, gate_up);
    x = nn_linear(tape, layer->down, x, false);
    tape_leave(tape, layer->mlp);
    return x;
}

/* A segment; args: the layer's address. */
static struct tensor *decoder_layer(struct tape *tape, const void *args,
                                    struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct layer *layer = *(const struct layer *const *)args;
    struct tensor *x = inputs[0];
    float eps = (float)layer->llama->config.rms_norm_eps;

    tape_enter(tape, layer->block);
    struct tensor *y = nn_rms_norm(tape, layer->input_norm, tape_retain(x), eps);
    y = attention(tape, layer, y);
    y = nn_add_rms_norm(tape, layer->post_attention_norm, x, y, &x, eps);
    x = nn_add_later(tape, x, mlp(tape, layer, y)); /* the next norm adds */
    tape_leave(tape, layer->block);
    return x;
}

/* The tables of angles, on the pass's device. */
static void prepare_rope(struct llama *net, struct tape *tape, int64_t T)
{
    const struct llama_config *config = &net->config;
    const struct rope_pair *pair = rope_tables_get(
        &net->tables, net->arena, &config->rope, net->heads.hd, T, config->max_position_embeddings);
    if (!pair) {
        struct error err;
        error_set(&err, ERR_LIMIT,
                  "sequences of more than %d lengths beyond max_position_embeddings (%lld) in one "
                  "run: rope_type dynamic needs a table for each",
                  ROPE_MAX_TABLES, (long long)config->max_position_embeddings);
        tape_fail(tape, &err);
        return;
    }
    size_t bytes = (size_t)(pair->T * net->heads.hd / 2) * sizeof(float);
    net->cos = tape_constant(tape, pair->cos, bytes, "rotary cosines");
    net->sin = tape_constant(tape, pair->sin, bytes, "rotary sines");
}

static void forward(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums)
{
    struct llama *net = (struct llama *)model;
    const struct llama_config *config = &net->config;

    language_check_batch(model, tape, batch);
    prepare_rope(net, tape, batch->T);
    tape_enter(tape, model->root);
    tape_enter(tape, net->inner);
    struct tensor *x = nn_embedding(tape, net->embedding, batch->tokens, batch->rows, batch->T);
    for (int64_t i = 0; i < config->num_hidden_layers; i++) {
        const struct layer *layer = &net->layers[i];
        x = tape_segment(tape, decoder_layer, &layer, sizeof layer,
                         (struct tensor *[TAPE_MAX_INPUTS]){x});
    }
    x = nn_rms_norm(tape, net->norm, x, (float)config->rms_norm_eps);
    tape_leave(tape, net->inner);
    struct module *head_weight = config->tie_word_embeddings ? net->embedding : net->head;
    language_head(tape, net->head, head_weight->params[0], NULL, x, batch, config->loss_chunk_rows,
                  loss_scale, sums);
    tape_leave(tape, model->root);
}

/* ---- declaration ---- */

/* A class of this family: "LlamaAttention". */
static struct module *add(struct llama *net, struct module *parent, const char *name,
                          const char *class_name)
{
    class_name = arena_printf(net->arena, "%s%s", net->config.family, class_name);
    return module_add(net->arena, parent, module_new(net->arena, name, class_name, NULL));
}

static struct module *add_norm(struct llama *net, struct module *parent, const char *name,
                               uint64_t *index)
{
    const char *class_name = arena_printf(net->arena, "%sRMSNorm", net->config.family);
    return nn_rms_norm_new(net->arena, parent, name, class_name, index, net->config.hidden_size,
                           net->config.rms_norm_eps);
}

static void add_layer(struct llama *net, struct module *list, int64_t i, uint64_t *index)
{
    struct layer *layer = &net->layers[i];
    const struct llama_config *c = &net->config;
    struct arena *arena = net->arena;
    int64_t D = c->hidden_size, I = c->intermediate_size;
    int64_t queries = net->heads.heads * net->heads.hd, keys = net->heads.kv_heads * net->heads.hd;
    float stddev = (float)c->initializer_range;
    bool bias = c->attention_bias;

    layer->llama = net;
    layer->dropout = (uint64_t)i;
    layer->block = add(net, list, arena_printf(arena, "%lld", (long long)i), "DecoderLayer");
    layer->block->is_block = true;
    struct module *a = layer->attention = add(net, layer->block, "self_attn", "Attention");
    layer->q = nn_linear_normal_new(arena, a, "q_proj", index, D, queries, bias, stddev);
    layer->k = nn_linear_normal_new(arena, a, "k_proj", index, D, keys, bias, stddev);
    layer->v = nn_linear_normal_new(arena, a, "v_proj", index, D, keys, bias, stddev);
    nn_linears_join((struct module *[]){layer->q, layer->k, layer->v}, 3);
    layer->o = nn_linear_normal_new(arena, a, "o_proj", index, queries, D, bias, stddev);
    struct module *m = layer->mlp = add(net, layer->block, "mlp", "MLP");
    layer->gate = nn_linear_normal_new(arena, m, "gate_proj", index, D, I, c->mlp_bias, stddev);
    layer->up = nn_linear_normal_new(arena, m, "up_proj", index, D, I, c->mlp_bias, stddev);
    nn_linears_join((struct module *[]){layer->gate, layer->up}, 2);
    layer->down = nn_linear_normal_new(arena, m, "down_proj", index, I, D, c->mlp_bias, stddev);
    module_add(arena, m, module_new(arena, "act_fn", "SiLUActivation", NULL));
    layer->input_norm = add_norm(net, layer->block, "input_layernorm", index);
    layer->post_attention_norm = add_norm(net, layer->block, "post_attention_layernorm", index);
}

/* A tied head has no weight of its own; the embedding is then read after the inner model is done,
 * so neither may be a unit below the root's. */
static struct module *add_head(struct llama *net, struct module *root, uint64_t *index)
{
    const struct llama_config *c = &net->config;
    if (!c->tie_word_embeddings)
        return nn_linear_normal_new(net->arena, root, "lm_head", index, c->hidden_size,
                                    c->vocab_size, false, (float)c->initializer_range);
    net->embedding->is_shared = net->inner->is_shared = true;
    return nn_linear_tied_new(net->arena, root, "lm_head", c->hidden_size, c->vocab_size, false);
}

static struct module *declare(struct llama *net, int64_t pad_id)
{
    const struct llama_config *c = &net->config;
    struct arena *arena = net->arena;
    uint64_t index = 0;
    struct module *root =
        module_new(arena, "", arena_printf(arena, "%sForCausalLM", c->family), NULL);
    struct module *inner = net->inner = add(net, root, "model", "Model");

    net->embedding = nn_padded_embedding_new(arena, inner, "embed_tokens", &index, c->vocab_size,
                                             c->hidden_size, (float)c->initializer_range, pad_id);
    struct module *list = module_add(arena, inner, module_new(arena, "layers", "ModuleList", NULL));
    list->is_list = true;
    net->layers = arena_array(arena, struct layer, c->num_hidden_layers);
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        add_layer(net, list, i, &index);
    net->norm = add_norm(net, inner, "norm", &index);
    add(net, inner, "rotary_emb", "RotaryEmbedding");
    net->head = add_head(net, root, &index);
    return root;
}

/* Linear and dynamic rope are made for sequences beyond max_position_embeddings; within a sliding
 * window there is nothing to mask. */
static int64_t longest_sequence(const struct llama_config *config)
{
    bool stretches = config->rope.type == ROPE_DYNAMIC || config->rope.type == ROPE_LINEAR;
    double stretch = stretches ? config->rope.factor : 1;
    int64_t most = (int64_t)(stretch * (double)config->max_position_embeddings);
    return config->sliding_window && config->sliding_window < most ? config->sliding_window : most;
}

struct model *model_llama_new(struct arena *arena, const struct llama_config *config,
                              int64_t pad_id)
{
    struct llama *net = arena_new(arena, struct llama);
    net->arena = arena;
    net->config = *config;
    net->heads = (struct nn_heads){config->num_attention_heads, llama_kv_heads(config),
                                   llama_head_dim(config)};
    net->model = (struct model){
        .type = "llama",
        .task = MODEL_NEXT_TOKEN,
        .root = declare(net, pad_id),
        .language = {.V = config->vocab_size,
                     .max_tokens = longest_sequence(config),
                     .L = config->num_hidden_layers,
                     .D = config->hidden_size,
                     .heads = net->heads.heads,
                     .kv_heads = net->heads.kv_heads,
                     .hd = net->heads.hd,
                     .I = config->intermediate_size,
                     .gated = true,
                     .embeddings =
                         config->tie_word_embeddings ? 0 : config->vocab_size * config->hidden_size,
                     .tied = config->tie_word_embeddings,
                     .rope = true,
                     .dropout = config->attention_dropout > 0},
        .forward = forward,
    };
    if (config->tie_word_embeddings)
        net->model.ties[net->model.tie_count++] =
            (struct model_tie){"lm_head.weight", net->embedding->params[0]};
    return &net->model;
}
