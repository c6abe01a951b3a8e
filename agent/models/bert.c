#include "agent/models/bert_internal.h"
#include "agent/models/families.h"
#include "agent/models/language.h"

#include <math.h>

const struct bert_config bert_default_config = {
    .vocab_size = 30522,
    .hidden_size = 768,
    .num_hidden_layers = 12,
    .num_attention_heads = 12,
    .intermediate_size = 3072,
    .hidden_dropout_prob = 0.1,
    .attention_probs_dropout_prob = 0.1,
    .classifier_dropout = -1,
    .max_position_embeddings = 512,
    .type_vocab_size = 2,
    .initializer_range = 0.02,
    .layer_norm_eps = 1e-12,
    .num_labels = 2,
};

int bert_check(const struct bert_config *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } fields[] = {
        {"vocab_size", config->vocab_size, 1, INT32_MAX},
        {"hidden_size", config->hidden_size, 1, LANGUAGE_MAX_WIDTH},
        {"num_hidden_layers", config->num_hidden_layers, 1, MODULE_MAX_CHILDREN},
        {"num_attention_heads", config->num_attention_heads, 1, config->hidden_size},
        {"intermediate_size", config->intermediate_size, 1, LANGUAGE_MAX_WIDTH},
        {"max_position_embeddings", config->max_position_embeddings, 1, LANGUAGE_MAX_TOKENS},
        {"type_vocab_size", config->type_vocab_size, 1, INT32_MAX},
    };
    for (size_t i = 0; i < array_length(fields); i++)
        if (language_check_field("BERT", fields[i].name, fields[i].value, fields[i].low,
                                 fields[i].high, err) < 0)
            return -1;
    /* Even for nn_first_token(), whose backward fills two numbers of bf16 at a time. */
    if (config->hidden_size % config->num_attention_heads || config->hidden_size % 2)
        return error_set(err, ERR_CONFIG,
                         "BERT model: hidden_size %lld must be even and a multiple of "
                         "num_attention_heads %lld",
                         (long long)config->hidden_size, (long long)config->num_attention_heads);
    if (config->head == BERT_CLASSIFICATION && config->num_labels < 2)
        return error_set(err, ERR_CONFIG,
                         "BERT model: %lld label%s: regression is not supported, 2 classes or more "
                         "are needed (id2label, num_labels)",
                         (long long)config->num_labels, config->num_labels == 1 ? "" : "s");
    return 0;
}

/* ---- forward ---- */

static struct tensor *embed(struct bert *net, struct tape *tape, const struct batch *batch)
{
    int64_t rows = batch->rows, T = batch->T, most = net->config.max_position_embeddings;
    /* Behind the positions lie as many zeros: the token types of a batch that gives none. */
    const int32_t *counts =
        tape_constant(tape, net->counts, (size_t)(2 * most) * sizeof *counts, "positions");

    tape_enter(tape, net->embeddings);
    struct tensor *x = nn_embedding(tape, net->words, batch->tokens, rows, T);
    struct tensor *types =
        batch->token_types
            ? nn_embedding(tape, net->token_types, batch->token_types, rows, T)
            : nn_embedding_of_each(tape, net->token_types, counts ? counts + most : NULL, rows, T);
    x = nn_add(tape, x, types);
    struct tensor *positions = nn_positions(tape, net->positions, counts, rows, T);
    x = nn_add_layer_norm(tape, net->norm, x, positions, NULL, (float)net->config.layer_norm_eps);
    x = nn_dropout(tape, net->dropout, x, 0);
    tape_leave(tape, net->embeddings);
    return x;
}

/* norm(x + dropout(dense(y))) */
static struct tensor *add_output(struct tape *tape, const struct bert *net,
                                 const struct bert_output *o, struct tensor *x, struct tensor *y,
                                 uint64_t number)
{
    tape_enter(tape, o->module);
    y = nn_dropout(tape, o->dropout, nn_linear(tape, o->dense, y, false), number);
    x = nn_add_layer_norm(tape, o->norm, x, y, NULL, (float)net->config.layer_norm_eps);
    tape_leave(tape, o->module);
    return x;
}

static struct tensor *self_attention(struct tape *tape, const struct bert_layer *layer,
                                     struct tensor *x)
{
    const struct bert *net = layer->bert;
    const struct nn_attention_how how = {
        .scale = 1 / sqrtf((float)net->heads.hd),
        .dropout = (float)net->config.attention_probs_dropout_prob,
        .layer = layer->number,
        .key_counts = net->token_counts,
    };

    tape_enter(tape, layer->self);
    struct tensor *qkv =
        nn_linears(tape, (struct module *[]){layer->query, layer->key, layer->value}, 3, x,
                   "queries, keys and values");
    x = nn_attention(tape, qkv, NULL, &net->heads, &how);
    tape_leave(tape, layer->self);
    return x;
}

/* A segment; args: the layer's address. */
static struct tensor *run_layer(struct tape *tape, const void *args,
                                struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct bert_layer *layer = *(const struct bert_layer *const *)args;
    const struct bert *net = layer->bert;
    struct tensor *x = inputs[0];

    tape_enter(tape, layer->module);
    tape_enter(tape, layer->attention);
    struct tensor *y = self_attention(tape, layer, tape_retain(x));
    x = add_output(tape, net, &layer->attention_output, x, y, layer->number + 1);
    tape_leave(tape, layer->attention);
    tape_enter(tape, layer->intermediate);
    y = nn_linear(tape, layer->intermediate_dense, tape_retain(x), false);
    y = nn_gelu(tape, y, net->config.gelu_tanh);
    tape_leave(tape, layer->intermediate);
    x = add_output(tape, net, &layer->output, x, y, layer->number + 2);
    tape_leave(tape, layer->module);
    return x;
}

static struct tensor *pool(struct tape *tape, const struct bert *net, struct tensor *x)
{
    tape_enter(tape, net->pooler);
    x = nn_linear(tape, net->pooler_dense, nn_first_token(tape, x), false);
    x = nn_tanh(tape, x);
    tape_leave(tape, net->pooler);
    return x;
}

/* The words behind the masks. */
static void predict_words(struct tape *tape, const struct bert *net, struct tensor *x,
                          const struct batch *batch, float loss_scale, double *sums)
{
    tape_enter(tape, net->predictions);
    tape_enter(tape, net->transform);
    x = nn_linear(tape, net->transform_dense, x, false);
    x = nn_gelu(tape, x, net->config.gelu_tanh);
    x = nn_layer_norm(tape, net->transform_norm, x, (float)net->config.layer_norm_eps);
    tape_leave(tape, net->transform);
    language_head(tape, net->decoder, net->words->params[0], net->predictions->params[0], x, batch,
                  net->config.loss_chunk_rows, loss_scale, sums);
    tape_leave(tape, net->predictions);
}

/* x: [rows, D]: the pooled sequences. logits: NULL, or what is asked for. */
static void predict_labels(struct tape *tape, const struct bert *net, struct tensor *x,
                           const struct batch *batch, float *logits, float loss_scale, double *sums)
{
    struct param *const *p = net->labels->params;
    if (logits)
        nn_language_logits(tape, net->labels, p[0], p[1], x, logits);
    else
        nn_language_loss(tape, net->labels, p[0], p[1], x, batch->labels, batch->rows, loss_scale,
                         sums);
}

static void predict_both(struct tape *tape, const struct bert *net, struct tensor *x,
                         struct tensor *pooled, const struct batch *batch, float loss_scale,
                         double *sums)
{
    if (batch->logits && !batch->label_logits)
        tape_release(tape, pooled);
    else
        predict_labels(tape, net, pooled, batch, batch->label_logits, batch->label_scale, sums + 3);
    predict_words(tape, net, x, batch, loss_scale, sums);
}

static void forward(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums)
{
    struct bert *net = (struct bert *)model;
    enum bert_head head = net->config.head;
    struct tensor *pooled = NULL;

    language_check_batch(model, tape, batch);
    net->token_counts = batch->token_counts;
    tape_enter(tape, model->root);
    tape_enter(tape, net->inner);
    struct tensor *x = embed(net, tape, batch);
    tape_enter(tape, net->encoder);
    for (int64_t i = 0; i < net->config.num_hidden_layers; i++) {
        const struct bert_layer *layer = &net->layers[i];
        x = tape_segment(tape, run_layer, &layer, sizeof layer,
                         (struct tensor *[TAPE_MAX_INPUTS]){x});
    }
    tape_leave(tape, net->encoder);
    if (head == BERT_PRETRAINING)
        /* x has a second reader, the words' head, and an op consumes its inputs. */
        pooled = pool(tape, net, tape_retain(x));
    else if (head == BERT_CLASSIFICATION)
        x = pool(tape, net, x);
    tape_leave(tape, net->inner);
    if (head == BERT_CLASSIFICATION) {
        x = nn_dropout(tape, net->labels_dropout, x, 1);
        predict_labels(tape, net, x, batch, batch->logits, loss_scale, sums);
    } else {
        tape_enter(tape, net->cls);
        if (head == BERT_PRETRAINING)
            predict_both(tape, net, x, pooled, batch, loss_scale, sums);
        else
            predict_words(tape, net, x, batch, loss_scale, sums);
        tape_leave(tape, net->cls);
    }
    tape_leave(tape, model->root);
}

struct model *model_bert_new(struct arena *arena, const struct bert_config *config, int64_t pad_id)
{
    struct bert *net = arena_new(arena, struct bert);
    const struct bert_config *c = &net->config;
    bool tied = config->head != BERT_CLASSIFICATION;
    net->arena = arena;
    net->config = *config;
    net->heads = (struct nn_heads){c->num_attention_heads, c->num_attention_heads,
                                   c->hidden_size / c->num_attention_heads};
    /* A table's rows are read and not multiplied: they cost no FLOPs. Tied words are multiplied as
     * the head. */
    int64_t looked_up =
        c->max_position_embeddings + c->type_vocab_size + (tied ? 0 : c->vocab_size);
    struct module *root = bert_declare(net, pad_id);
    int64_t of_rows = (net->pooler ? module_param_count(net->pooler) : 0) +
                      (net->labels ? module_param_count(net->labels) : 0);
    net->model = (struct model){
        .type = "bert",
        .task = family_bert.heads[c->head].task,
        .root = root,
        .classes = net->labels ? net->labels->params[0]->shape[0] : 0,
        .label_names = c->label_names,
        .language = {.V = c->vocab_size,
                     .max_tokens = c->max_position_embeddings,
                     .L = c->num_hidden_layers,
                     .D = c->hidden_size,
                     .token_types = c->type_vocab_size,
                     .pad_id = (int32_t)(pad_id < 0 ? 0 : pad_id),
                     .heads = net->heads.heads,
                     .kv_heads = net->heads.kv_heads,
                     .hd = net->heads.hd,
                     .I = c->intermediate_size,
                     .sees_all = true,
                     .embeddings = looked_up * c->hidden_size + of_rows,
                     .tied = tied,
                     .biases = true,
                     .positions = true,
                     .post_norm = true,
                     .dropout = c->hidden_dropout_prob > 0},
        .forward = forward,
    };
    if (tied) {
        net->model.tie_count = 2;
        net->model.ties[0] =
            (struct model_tie){"cls.predictions.decoder.weight", net->words->params[0]};
        net->model.ties[1] =
            (struct model_tie){"cls.predictions.decoder.bias", net->predictions->params[0]};
    }
    return &net->model;
}
