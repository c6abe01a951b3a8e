#include "agent/models/language.h"
#include "agent/models/t5_internal.h"

#include <assert.h>
#include <math.h>

const struct t5_config t5_default_config = {
    .vocab_size = 32128,
    .d_model = 512,
    .d_kv = 64,
    .d_ff = 2048,
    .num_layers = 6,
    .num_heads = 8,
    .relative_attention_num_buckets = 32,
    .relative_attention_max_distance = 128,
    .dropout_rate = 0.1,
    .layer_norm_epsilon = 1e-6,
    .initializer_factor = 1,
    .tie_word_embeddings = true,
};

const char *t5_feed_forward_name(enum t5_feed_forward kind)
{
    static const char *const names[] = {
        [T5_RELU] = "relu", [T5_GATED_GELU] = "gated-gelu", [T5_GATED_SILU] = "gated-silu"};
    return names[kind];
}

int64_t t5_decoder_layers(const struct t5_config *config)
{
    return config->num_decoder_layers ? config->num_decoder_layers : config->num_layers;
}

bool t5_scales(const struct t5_config *config)
{
    return config->scaling == T5_SCALES ||
           (config->scaling == T5_SCALES_IF_TIED && config->tie_word_embeddings);
}

int t5_check(const struct t5_config *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } fields[] = {
        {"vocab_size", config->vocab_size, 1, INT32_MAX},
        {"d_model", config->d_model, 1, LANGUAGE_MAX_WIDTH},
        {"d_kv", config->d_kv, 1, LANGUAGE_MAX_WIDTH},
        {"d_ff", config->d_ff, 1, LANGUAGE_MAX_WIDTH},
        {"num_layers", config->num_layers, 1, MODULE_MAX_CHILDREN},
        {"num_decoder_layers", config->num_decoder_layers, 0, MODULE_MAX_CHILDREN},
        {"num_heads", config->num_heads, 1, LANGUAGE_MAX_WIDTH},
        {"relative_attention_num_buckets", config->relative_attention_num_buckets, 4, 1 << 20},
        {"relative_attention_max_distance", config->relative_attention_max_distance, 2,
         LANGUAGE_MAX_TOKENS},
        {"decoder_start_token_id", config->decoder_start_token_id, 0, config->vocab_size - 1},
    };
    for (size_t i = 0; i < array_length(fields); i++)
        if (language_check_field("T5", fields[i].name, fields[i].value, fields[i].low,
                                 fields[i].high, err) < 0)
            return -1;
    /* The encoder halves the buckets by direction, and each half into exact and logarithmic
     * distances (_relative_position_bucket). */
    if (config->relative_attention_num_buckets % 4)
        return error_set(err, ERR_CONFIG,
                         "T5 model: relative_attention_num_buckets %lld is no multiple of 4",
                         (long long)config->relative_attention_num_buckets);
    /* The decoder divides by log(max_distance / (buckets / 2)), which must be above 0. */
    if (config->relative_attention_max_distance <= config->relative_attention_num_buckets / 2)
        return error_set(err, ERR_CONFIG,
                         "T5 model: relative_attention_max_distance %lld must be above half of "
                         "relative_attention_num_buckets (%lld)",
                         (long long)config->relative_attention_max_distance,
                         (long long)config->relative_attention_num_buckets);
    return 0;
}

/* ---- forward ---- */

/* A sublayer gives what is to be added to the residual stream: y. The next one adds it to *x where
 * it normalises that; the first has none (NULL). */
static struct tensor *enter_sublayer(struct tape *tape, const struct t5 *net,
                                     const struct t5_sublayer *layer, struct tensor **x,
                                     struct tensor *y)
{
    float eps = (float)net->config.layer_norm_epsilon;
    tape_enter(tape, layer->module);
    return y ? nn_add_rms_norm(tape, layer->norm, *x, y, x, eps)
             : nn_rms_norm(tape, layer->norm, tape_retain(*x), eps);
}

static struct tensor *leave_sublayer(struct tape *tape, const struct t5_sublayer *layer,
                                     struct tensor *y)
{
    y = nn_dropout(tape, layer->dropout, y, layer->number);
    tape_leave(tape, layer->module);
    return y;
}

/* T5 does not divide scores by sqrt(d): its initial weights of q are that much smaller (Raffel et
 * al. 2020). */
static struct nn_attention_how how_of(const struct t5 *net, const struct t5_attention *a)
{
    return (struct nn_attention_how){
        .scale = 1, .dropout = (float)net->config.dropout_rate, .layer = a->layer.number + 1};
}

static struct tensor *self_attention(struct tape *tape, const struct t5_block *block,
                                     struct tensor **x, struct tensor *bias)
{
    const struct t5 *net = block->t5;
    const struct t5_attention *a = &block->self;
    struct nn_attention_how how = how_of(net, a);
    how.causal = block->in_decoder;
    how.key_counts = block->in_decoder ? NULL : net->source_counts;

    struct tensor *y = enter_sublayer(tape, net, &a->layer, x, NULL);
    tape_enter(tape, a->module);
    struct tensor *qkv =
        nn_linears(tape, (struct module *[]){a->q, a->k, a->v}, 3, y, "queries, keys and values");
    y = nn_attention(tape, qkv, bias, &net->heads, &how);
    y = nn_linear(tape, a->o, y, false);
    tape_leave(tape, a->module);
    return leave_sublayer(tape, &a->layer, y);
}

static struct tensor *cross_attention(struct tape *tape, const struct t5_block *block,
                                      struct tensor **x, struct tensor *y, struct tensor *memory)
{
    const struct t5 *net = block->t5;
    const struct t5_attention *a = &block->cross;
    struct nn_attention_how how = how_of(net, a);
    how.key_counts = net->source_counts;

    y = enter_sublayer(tape, net, &a->layer, x, y);
    tape_enter(tape, a->module);
    struct tensor *q = nn_linear(tape, a->q, y, false);
    struct tensor *kv =
        nn_linears(tape, (struct module *[]){a->k, a->v}, 2, memory, "keys and values");
    y = nn_cross_attention(tape, q, kv, &net->heads, &how);
    y = nn_linear(tape, a->o, y, false);
    tape_leave(tape, a->module);
    return leave_sublayer(tape, &a->layer, y);
}

static struct tensor *feed_forward(struct tape *tape, const struct t5_block *block,
                                   struct tensor **x, struct tensor *y)
{
    const struct t5 *net = block->t5;
    const struct t5_ff *f = &block->feed_forward;
    enum t5_feed_forward kind = net->config.feed_forward_proj;

    y = enter_sublayer(tape, net, &f->layer, x, y);
    tape_enter(tape, f->module);
    if (kind == T5_RELU) {
        y = nn_linear(tape, f->wi, y, true);
    } else {
        struct tensor *gate_up =
            nn_linears(tape, (struct module *[]){f->wi, f->wi_1}, 2, y, "gate and up");
        y = kind == T5_GATED_GELU ? nn_geglu(tape, gate_up) : nn_swiglu(tape, gate_up);
    }
    y = nn_dropout(tape, f->dropout, y, f->layer.number + 1);
    y = nn_linear(tape, f->wo, y, false);
    tape_leave(tape, f->module);
    return leave_sublayer(tape, &f->layer, y);
}

enum { X, BIAS, MEMORY }; /* what a block reads */

/* A segment, between the borders of the block; args: the block's address. */
static struct tensor *run_block(struct tape *tape, const void *args,
                                struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct t5_block *block = *(const struct t5_block *const *)args;
    struct tensor *x = inputs[X];
    struct tensor *y = self_attention(tape, block, &x, inputs[BIAS]);
    if (block->in_decoder)
        y = cross_attention(tape, block, &x, y, inputs[MEMORY]);
    y = feed_forward(tape, block, &x, y);
    return nn_add_later(tape, x, y); /* the next norm adds */
}

/* ids: [rows, T]; memory: NULL, or what the encoder gave, to be consumed. The position bias is
 * looked up once, in the first block, whose table it is, and read by all blocks. */
static struct tensor *run_stack(struct t5 *net, struct tape *tape, struct t5_stack *stack,
                                const int32_t *ids, int64_t rows, int64_t T, struct tensor *memory)
{
    const int32_t *buckets = t5_buckets_get(&stack->buckets, tape, T);
    struct tensor *bias = NULL;

    tape_enter(tape, stack->module);
    struct tensor *x = nn_embedding(tape, net->shared, ids, rows, T);
    x = nn_dropout(tape, stack->dropout, x, stack->embedding_number);
    for (int64_t i = 0; i < stack->L; i++) {
        const struct t5_block *block = &stack->blocks[i];
        tape_enter(tape, block->module);
        if (i == 0)
            bias = nn_embedding(tape, stack->bias, buckets, 1, 2 * T - 1);
        if (i + 1 < stack->L) {
            tape_retain(bias);
            tape_retain(memory);
        }
        x = tape_segment(tape, run_block, &block, sizeof block,
                         (struct tensor *[TAPE_MAX_INPUTS]){x, bias, memory});
        tape_leave(tape, block->module);
    }
    x = nn_rms_norm(tape, stack->norm, x, (float)net->config.layer_norm_epsilon);
    x = nn_dropout(tape, stack->dropout, x, stack->output_number);
    tape_leave(tape, stack->module);
    return x;
}

static void forward(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums)
{
    struct t5 *net = (struct t5 *)model;
    const struct t5_config *config = &net->config;
    int64_t rows = batch->rows;

    assert(batch->source && batch->T_source > 0);
    language_check_batch(model, tape, batch);
    net->source_counts = batch->source_counts;
    tape_enter(tape, model->root);
    struct tensor *memory =
        run_stack(net, tape, &net->encoder, batch->source, rows, batch->T_source, NULL);
    struct tensor *x = run_stack(net, tape, &net->decoder, batch->tokens, rows, batch->T, memory);
    if (t5_scales(config))
        /* As the head is the embedding, whose weights are drawn with a standard deviation of 1
         * (mesh-tensorflow). */
        x = nn_scale(tape, x, 1 / sqrtf((float)config->d_model));
    struct module *head_weight = config->tie_word_embeddings ? net->shared : net->head;
    language_head(tape, net->head, head_weight->params[0], NULL, x, batch, config->loss_chunk_rows,
                  loss_scale, sums);
    tape_leave(tape, model->root);
}

/* The decoder's and the head's, but for what multiplies the encoder's output. */
static int64_t target_parameters(const struct t5 *net)
{
    const struct t5_config *c = &net->config;
    int64_t of_source = 2 * c->d_model * c->num_heads * c->d_kv;
    return module_param_count(net->decoder.module) - net->decoder.L * of_source +
           c->vocab_size * c->d_model;
}

struct model *model_t5_new(struct arena *arena, const struct t5_config *config, int64_t pad_id)
{
    struct t5 *net = arena_new(arena, struct t5);
    net->arena = arena;
    net->config = *config;
    net->heads = (struct nn_heads){config->num_heads, config->num_heads, config->d_kv};
    net->model = (struct model){
        .type = "t5",
        .task = MODEL_TRANSLATION,
        .language = {.V = config->vocab_size,
                     .max_tokens = LANGUAGE_MAX_TOKENS,
                     .L = config->num_layers,
                     .L_decoder = t5_decoder_layers(config),
                     .D = config->d_model,
                     .heads = config->num_heads,
                     .kv_heads = config->num_heads,
                     .hd = config->d_kv,
                     .I = config->d_ff,
                     .gated = config->feed_forward_proj != T5_RELU,
                     .start_id = (int32_t)config->decoder_start_token_id,
                     .pad_id = (int32_t)pad_id,
                     .embeddings =
                         config->tie_word_embeddings ? 0 : config->vocab_size * config->d_model,
                     .tied = config->tie_word_embeddings,
                     .distance_bias = true,
                     .dropout = config->dropout_rate > 0},
        .forward = forward,
    };
    t5_declare(net);
    net->model.language.target_parameters = target_parameters(net);
    static const char *const names[] = {"encoder.embed_tokens.weight",
                                        "decoder.embed_tokens.weight", "lm_head.weight"};
    net->model.tie_count = config->tie_word_embeddings ? 3 : 2;
    for (int i = 0; i < net->model.tie_count; i++)
        net->model.ties[i] = (struct model_tie){names[i], net->shared->params[0]};
    return &net->model;
}
