/* T5's modules, named, ordered and printed as transformers' are. */
#include "agent/models/t5_internal.h"

#include <math.h>

static struct module *add(struct t5 *net, struct module *parent, const char *name,
                          const char *class_name)
{
    return module_add(net->arena, parent, module_new(net->arena, name, class_name, NULL));
}

static struct module *add_list(struct t5 *net, struct module *parent, const char *name)
{
    struct module *list = add(net, parent, name, "ModuleList");
    list->is_list = true;
    return list;
}

static struct module *add_numbered(struct t5 *net, struct module *list, int64_t i,
                                   const char *class_name)
{
    return add(net, list, arena_printf(net->arena, "%lld", (long long)i), class_name);
}

static struct module *add_linear(struct t5 *net, struct module *parent, const char *name,
                                 int64_t in, int64_t out, double variance)
{
    double stddev = net->config.initializer_factor / sqrt(variance);
    return nn_linear_normal_new(net->arena, parent, name, &net->next_index, in, out, false,
                                (float)stddev);
}

static struct module *add_norm(struct t5 *net, struct module *parent, const char *name)
{
    const struct t5_config *c = &net->config;
    float weight = (float)c->initializer_factor;
    struct module *m = nn_rms_norm_new(net->arena, parent, name, "T5LayerNorm", &net->next_index,
                                       c->d_model, c->layer_norm_epsilon);
    m->description = "T5LayerNorm()";
    m->params[0]->init = (struct param_init){INIT_UNIFORM, weight, weight};
    return m;
}

static struct module *add_dropout(struct t5 *net, struct module *parent)
{
    return nn_dropout_new(net->arena, parent, "dropout", (float)net->config.dropout_rate);
}

/* The parts of a sub-layer that stand behind its work. */
static void finish_sublayer(struct t5 *net, struct t5_sublayer *layer)
{
    layer->norm = add_norm(net, layer->module, "layer_norm");
    layer->dropout = add_dropout(net, layer->module);
    layer->number = net->next_number;
    net->next_number += 2;
}

/* bias: NULL, or where to put the table of position biases, which is then declared. It is read
 * before the sub-layer begins, so what holds it is no unit below the block's. */
static void add_attention(struct t5 *net, struct t5_attention *a, struct module *list, int64_t i,
                          bool cross, struct module **bias)
{
    const struct t5_config *c = &net->config;
    int64_t D = c->d_model, width = c->num_heads * c->d_kv;

    a->layer.module =
        add_numbered(net, list, i, cross ? "T5LayerCrossAttention" : "T5LayerSelfAttention");
    struct module *m = a->module =
        add(net, a->layer.module, cross ? "EncDecAttention" : "SelfAttention", "T5Attention");
    /* The standard deviations of transformers' T5PreTrainedModel._init_weights; q's holds the
     * 1/sqrt(d_kv) that attention leaves out. */
    a->q = add_linear(net, m, "q", D, width, (double)(D * c->d_kv));
    a->k = add_linear(net, m, "k", D, width, (double)D);
    a->v = add_linear(net, m, "v", D, width, (double)D);
    if (cross)
        nn_linears_join((struct module *[]){a->k, a->v}, 2);
    else
        nn_linears_join((struct module *[]){a->q, a->k, a->v}, 3);
    a->o = add_linear(net, m, "o", width, D, (double)width);
    if (bias) {
        double stddev = c->initializer_factor / sqrt((double)D);
        *bias = nn_embedding_new(net->arena, m, "relative_attention_bias", &net->next_index,
                                 c->relative_attention_num_buckets, c->num_heads, (float)stddev);
        (*bias)->is_shared = m->is_shared = a->layer.module->is_shared = true;
    }
    finish_sublayer(net, &a->layer);
}

static void add_feed_forward(struct t5 *net, struct t5_ff *f, struct module *list, int64_t i)
{
    static const char *const activations[] = {[T5_RELU] = "ReLU",
                                              [T5_GATED_GELU] = "NewGELUActivation",
                                              [T5_GATED_SILU] = "SiLUActivation"};
    const struct t5_config *c = &net->config;
    int64_t D = c->d_model, I = c->d_ff;
    bool gated = c->feed_forward_proj != T5_RELU;

    f->layer.module = add_numbered(net, list, i, "T5LayerFF");
    struct module *m = f->module = add(net, f->layer.module, "DenseReluDense",
                                       gated ? "T5DenseGatedActDense" : "T5DenseActDense");
    f->wi = add_linear(net, m, gated ? "wi_0" : "wi", D, I, (double)D);
    if (gated) {
        f->wi_1 = add_linear(net, m, "wi_1", D, I, (double)D);
        nn_linears_join((struct module *[]){f->wi, f->wi_1}, 2);
    }
    f->wo = add_linear(net, m, "wo", I, D, (double)I);
    f->dropout = add_dropout(net, m);
    add(net, m, "act", activations[c->feed_forward_proj]);
    finish_sublayer(net, &f->layer);
}

static void add_block(struct t5 *net, struct t5_stack *stack, struct module *list, int64_t i,
                      bool decoder)
{
    struct t5_block *block = &stack->blocks[i];
    block->t5 = net;
    block->in_decoder = decoder;
    block->module = add_numbered(net, list, i, "T5Block");
    block->module->is_block = true;
    struct module *layers = add_list(net, block->module, "layer");
    add_attention(net, &block->self, layers, 0, false, i == 0 ? &stack->bias : NULL);
    if (decoder)
        add_attention(net, &block->cross, layers, 1, true, NULL);
    add_feed_forward(net, &block->feed_forward, layers, decoder ? 2 : 1);
}

static void add_stack(struct t5 *net, struct t5_stack *stack, const char *name, int64_t L,
                      bool decoder)
{
    const struct t5_config *c = &net->config;
    stack->L = L;
    stack->module = add(net, net->model.root, name, "T5Stack");
    module_add(net->arena, stack->module,
               module_new(net->arena, "embed_tokens", "Embedding", net->shared->description));
    struct module *list = add_list(net, stack->module, "block");
    stack->blocks = arena_array(net->arena, struct t5_block, L);
    for (int64_t i = 0; i < L; i++)
        add_block(net, stack, list, i, decoder);
    stack->norm = add_norm(net, stack->module, "final_layer_norm");
    stack->dropout = add_dropout(net, stack->module);
    stack->embedding_number = net->next_number++;
    stack->output_number = net->next_number++;
    stack->buckets = (struct t5_buckets){.arena = net->arena,
                                         .bidirectional = !decoder,
                                         .buckets = c->relative_attention_num_buckets,
                                         .max_distance = c->relative_attention_max_distance};
}

/* The embedding is read by both stacks, and by a tied head. */
void t5_declare(struct t5 *net)
{
    const struct t5_config *c = &net->config;
    float factor = (float)c->initializer_factor;
    struct module *root = net->model.root =
        module_new(net->arena, "", "T5ForConditionalGeneration", NULL);
    net->shared = nn_embedding_new(net->arena, root, "shared", &net->next_index, c->vocab_size,
                                   c->d_model, factor);
    net->shared->is_shared = true;
    add_stack(net, &net->encoder, "encoder", c->num_layers, false);
    add_stack(net, &net->decoder, "decoder", t5_decoder_layers(c), true);
    net->head =
        c->tie_word_embeddings
            ? nn_linear_tied_new(net->arena, root, "lm_head", c->d_model, c->vocab_size, false)
            : nn_linear_normal_new(net->arena, root, "lm_head", &net->next_index, c->d_model,
                                   c->vocab_size, false, factor);
}
