#include "agent/models/gpt2.h"

#include "agent/models/language.h"
#include "agent/nn/nn.h"

#include <math.h>

const struct gpt2_config gpt2_default_config = {
    .vocab_size = 50257,
    .n_positions = 1024,
    .n_embd = 768,
    .n_layer = 12,
    .n_head = 12,
    .gelu_tanh = true,
    .layer_norm_epsilon = 1e-5,
    .initializer_range = 0.02,
    .embd_pdrop = 0.1,
    .attn_pdrop = 0.1,
    .resid_pdrop = 0.1,
    .tie_word_embeddings = true,
};

/* The modules of one block. */
struct block {
    struct gpt2 *gpt2;
    uint64_t dropout; /* the first of the numbers that name its random numbers */
    struct module *module, *ln_1, *ln_2;
    struct module *attn, *c_attn, *attn_proj, *attn_dropout, *resid_dropout;
    struct module *mlp, *c_fc, *mlp_proj, *mlp_dropout;
};
enum { DROPOUTS = 3 }; /* of a block: attention's probabilities, its output, the MLP's output */

struct gpt2 {
    struct model model; /* first: forward() gets a pointer to it */
    struct gpt2_config config;
    struct nn_heads heads;
    struct module *transformer, *wte, *wpe, *drop, *ln_f, *head;
    struct block *blocks;
    int32_t *positions; /* 0, 1, .. n_positions - 1 */
};

int64_t gpt2_inner(const struct gpt2_config *config)
{
    return config->n_inner ? config->n_inner : 4 * config->n_embd;
}

int gpt2_check(const struct gpt2_config *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } fields[] = {
        {"vocab_size", config->vocab_size, 1, INT32_MAX},
        {"n_positions", config->n_positions, 1, LANGUAGE_MAX_TOKENS},
        {"n_embd", config->n_embd, 1, LANGUAGE_MAX_WIDTH},
        {"n_layer", config->n_layer, 1, MODULE_MAX_CHILDREN},
        {"n_head", config->n_head, 1, config->n_embd},
        {"n_inner", config->n_inner, 0, LANGUAGE_MAX_WIDTH},
    };
    for (size_t i = 0; i < array_length(fields); i++)
        if (language_check_field("GPT2", fields[i].name, fields[i].value, fields[i].low,
                                 fields[i].high, err) < 0)
            return -1;
    if (config->n_embd % config->n_head)
        return error_set(err, ERR_CONFIG, "GPT2 model: n_head %lld does not divide n_embd %lld",
                         (long long)config->n_head, (long long)config->n_embd);
    return 0;
}

/* ---- forward ---- */

static struct tensor *attention(struct tape *tape, const struct block *block, struct tensor *x)
{
    const struct gpt2 *net = block->gpt2;

    tape_enter(tape, block->attn);
    x = nn_conv1d(tape, block->c_attn, x);
    struct nn_attention_how how = nn_attention_causal(&net->heads);
    how.dropout = block->attn_dropout->dropout;
    how.layer = block->dropout;
    x = nn_attention(tape, x, NULL, &net->heads, &how);
    x = nn_conv1d(tape, block->attn_proj, x);
    x = nn_dropout(tape, block->resid_dropout, x, block->dropout + 1);
    tape_leave(tape, block->attn);
    return x;
}

static struct tensor *mlp(struct tape *tape, const struct block *block, struct tensor *x)
{
    tape_enter(tape, block->mlp);
    x = nn_conv1d_mlp(tape, block->c_fc, block->mlp_proj, x, block->gpt2->config.gelu_tanh);
    x = nn_dropout(tape, block->mlp_dropout, x, block->dropout + 2);
    tape_leave(tape, block->mlp);
    return x;
}

/* A segment; args: the block's address. */
static struct tensor *gpt2_block(struct tape *tape, const void *args,
                                 struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct block *block = *(const struct block *const *)args;
    struct tensor *x = inputs[0];
    float eps = (float)block->gpt2->config.layer_norm_epsilon;

    tape_enter(tape, block->module);
    struct tensor *y = nn_layer_norm(tape, block->ln_1, tape_retain(x), eps);
    y = attention(tape, block, y);
    /* x + y and its norm in one op: one pass over the memory less. It puts the sum into y's place,
     * which is the residual stream then. */
    y = nn_add_layer_norm(tape, block->ln_2, x, y, &x, eps);
    x = nn_add_later(tape, x, mlp(tape, block, y)); /* the next norm adds */
    tape_leave(tape, block->module);
    return x;
}

static struct tensor *embed(struct gpt2 *net, struct tape *tape, const struct batch *batch)
{
    const int32_t *positions = tape_constant(
        tape, net->positions, (size_t)net->config.n_positions * sizeof(int32_t), "positions");
    struct tensor *x = nn_embedding(tape, net->wte, batch->tokens, batch->rows, batch->T);
    struct tensor *p = nn_positions(tape, net->wpe, positions, batch->rows, batch->T);
    return nn_dropout(tape, net->drop, nn_add(tape, x, p), 0);
}

static void forward(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums)
{
    struct gpt2 *net = (struct gpt2 *)model;
    const struct gpt2_config *config = &net->config;

    language_check_batch(model, tape, batch);
    tape_enter(tape, model->root);
    tape_enter(tape, net->transformer);
    struct tensor *x = embed(net, tape, batch);
    for (int64_t i = 0; i < config->n_layer; i++) {
        const struct block *block = &net->blocks[i];
        x = tape_segment(tape, gpt2_block, &block, sizeof block,
                         (struct tensor *[TAPE_MAX_INPUTS]){x});
    }
    x = nn_layer_norm(tape, net->ln_f, x, (float)config->layer_norm_epsilon);
    tape_leave(tape, net->transformer);
    struct module *head_weight = config->tie_word_embeddings ? net->wte : net->head;
    language_head(tape, net->head, head_weight->params[0], NULL, x, batch, config->loss_chunk_rows,
                  loss_scale, sums);
    tape_leave(tape, model->root);
}

/* ---- declaration ---- */

static struct module *add(struct arena *arena, struct module *parent, const char *name,
                          const char *class_name)
{
    return module_add(arena, parent, module_new(arena, name, class_name, NULL));
}

/* What adds to the residual stream starts smaller, by the number of such layers (Radford 2019). */
static void add_block(struct gpt2 *net, struct arena *arena, struct module *list, int64_t i,
                      uint64_t *index)
{
    const struct gpt2_config *c = &net->config;
    struct block *b = &net->blocks[i];
    int64_t D = c->n_embd;
    float stddev = (float)c->initializer_range;
    float residual = (float)(c->initializer_range / sqrt(2.0 * (double)c->n_layer));

    b->gpt2 = net;
    b->dropout = 1 + DROPOUTS * (uint64_t)i;
    b->module = add(arena, list, arena_printf(arena, "%lld", (long long)i), "GPT2Block");
    b->module->is_block = true;
    b->ln_1 = nn_layer_norm_new(arena, b->module, "ln_1", index, D, c->layer_norm_epsilon);
    b->attn = add(arena, b->module, "attn", "GPT2Attention");
    b->c_attn = nn_conv1d_new(arena, b->attn, "c_attn", index, D, 3 * D, stddev);
    b->attn_proj = nn_conv1d_new(arena, b->attn, "c_proj", index, D, D, residual);
    b->attn_dropout = nn_dropout_new(arena, b->attn, "attn_dropout", (float)c->attn_pdrop);
    b->resid_dropout = nn_dropout_new(arena, b->attn, "resid_dropout", (float)c->resid_pdrop);
    b->ln_2 = nn_layer_norm_new(arena, b->module, "ln_2", index, D, c->layer_norm_epsilon);
    b->mlp = add(arena, b->module, "mlp", "GPT2MLP");
    b->c_fc = nn_conv1d_new(arena, b->mlp, "c_fc", index, D, gpt2_inner(c), stddev);
    b->mlp_proj = nn_conv1d_new(arena, b->mlp, "c_proj", index, gpt2_inner(c), D, residual);
    add(arena, b->mlp, "act", c->gelu_tanh ? "NewGELUActivation" : "GELUActivation");
    b->mlp_dropout = nn_dropout_new(arena, b->mlp, "dropout", (float)c->resid_pdrop);
}

/* As a tied Llama's: neither the embedding nor what holds it may be a unit below the root's. */
static struct module *add_head(struct gpt2 *net, struct arena *arena, struct module *root,
                               uint64_t *index)
{
    const struct gpt2_config *c = &net->config;
    if (!c->tie_word_embeddings)
        return nn_linear_normal_new(arena, root, "lm_head", index, c->n_embd, c->vocab_size, false,
                                    (float)c->initializer_range);
    net->wte->is_shared = net->transformer->is_shared = true;
    return nn_linear_tied_new(arena, root, "lm_head", c->n_embd, c->vocab_size, false);
}

static struct module *declare(struct gpt2 *net, struct arena *arena)
{
    const struct gpt2_config *c = &net->config;
    float stddev = (float)c->initializer_range;
    uint64_t index = 0;
    struct module *root = module_new(arena, "", "GPT2LMHeadModel", NULL);
    struct module *inner = net->transformer = add(arena, root, "transformer", "GPT2Model");

    net->wte = nn_embedding_new(arena, inner, "wte", &index, c->vocab_size, c->n_embd, stddev);
    net->wpe = nn_embedding_new(arena, inner, "wpe", &index, c->n_positions, c->n_embd, stddev);
    net->drop = nn_dropout_new(arena, inner, "drop", (float)c->embd_pdrop);
    struct module *list = add(arena, inner, "h", "ModuleList");
    list->is_list = true;
    net->blocks = arena_array(arena, struct block, c->n_layer);
    for (int64_t i = 0; i < c->n_layer; i++)
        add_block(net, arena, list, i, &index);
    net->ln_f = nn_layer_norm_new(arena, inner, "ln_f", &index, c->n_embd, c->layer_norm_epsilon);
    net->head = add_head(net, arena, root, &index);
    return root;
}

struct model *model_gpt2_new(struct arena *arena, const struct gpt2_config *config)
{
    struct gpt2 *net = arena_new(arena, struct gpt2);
    net->config = *config;
    net->heads = (struct nn_heads){config->n_head, config->n_head, config->n_embd / config->n_head};
    net->positions = arena_array(arena, int32_t, config->n_positions);
    for (int64_t i = 0; i < config->n_positions; i++)
        net->positions[i] = (int32_t)i;
    /* What is only looked up takes no FLOPs. A tied wte is multiplied, as lm_head. */
    int64_t looked_up = config->n_positions * config->n_embd;
    if (!config->tie_word_embeddings)
        looked_up += config->vocab_size * config->n_embd;
    net->model = (struct model){
        .type = "gpt2",
        .task = MODEL_NEXT_TOKEN,
        .root = declare(net, arena),
        .language = {.V = config->vocab_size,
                     .max_tokens = config->n_positions,
                     .L = config->n_layer,
                     .D = config->n_embd,
                     .heads = config->n_head,
                     .kv_heads = config->n_head,
                     .hd = net->heads.hd,
                     .I = gpt2_inner(config),
                     .embeddings = looked_up,
                     .tied = config->tie_word_embeddings,
                     .biases = true,
                     .positions = true,
                     .packed_qkv = true,
                     .gelu_in_products = config->gelu_tanh,
                     .dropout = config->attn_pdrop > 0 || config->resid_pdrop > 0},
        .forward = forward,
    };
    if (config->tie_word_embeddings)
        net->model.ties[net->model.tie_count++] =
            (struct model_tie){"lm_head.weight", net->wte->params[0]};
    return &net->model;
}
