/* BERT's modules, named, ordered and printed as transformers' are. */
#include "agent/models/bert_internal.h"

static struct module *add(struct bert *net, struct module *parent, const char *name,
                          const char *class_name)
{
    return module_add(net->arena, parent, module_new(net->arena, name, class_name, NULL));
}

static struct module *add_linear(struct bert *net, struct module *parent, const char *name,
                                 int64_t in, int64_t out)
{
    return nn_linear_normal_new(net->arena, parent, name, &net->next_index, in, out, true,
                                (float)net->config.initializer_range);
}

static struct module *add_norm(struct bert *net, struct module *parent)
{
    return nn_layer_norm_new(net->arena, parent, "LayerNorm", &net->next_index,
                             net->config.hidden_size, net->config.layer_norm_eps);
}

static struct module *add_dropout(struct bert *net, struct module *parent, double p)
{
    return nn_dropout_new(net->arena, parent, "dropout", (float)p);
}

static void add_activation(struct bert *net, struct module *parent, const char *name)
{
    add(net, parent, name, net->config.gelu_tanh ? "NewGELUActivation" : "GELUActivation");
}

static struct module *add_table(struct bert *net, const char *name, int64_t rows)
{
    return nn_embedding_new(net->arena, net->embeddings, name, &net->next_index, rows,
                            net->config.hidden_size, (float)net->config.initializer_range);
}

static void add_embeddings(struct bert *net, int64_t pad_id)
{
    const struct bert_config *c = &net->config;
    net->embeddings = add(net, net->inner, "embeddings", "BertEmbeddings");
    net->words =
        nn_padded_embedding_new(net->arena, net->embeddings, "word_embeddings", &net->next_index,
                                c->vocab_size, c->hidden_size, (float)c->initializer_range, pad_id);
    net->positions = add_table(net, "position_embeddings", c->max_position_embeddings);
    net->token_types = add_table(net, "token_type_embeddings", c->type_vocab_size);
    net->norm = add_norm(net, net->embeddings);
    net->dropout = add_dropout(net, net->embeddings, c->hidden_dropout_prob);
    net->counts = arena_array(net->arena, int32_t, 2 * c->max_position_embeddings);
    for (int64_t i = 0; i < c->max_position_embeddings; i++)
        net->counts[i] = (int32_t)i;
}

static void add_output_modules(struct bert *net, struct bert_output *o, struct module *parent,
                               const char *class_name, int64_t in)
{
    o->module = add(net, parent, "output", class_name);
    o->dense = add_linear(net, o->module, "dense", in, net->config.hidden_size);
    o->norm = add_norm(net, o->module);
    o->dropout = add_dropout(net, o->module, net->config.hidden_dropout_prob);
}

static void add_layer(struct bert *net, struct module *list, int64_t i)
{
    const struct bert_config *c = &net->config;
    struct bert_layer *layer = &net->layers[i];
    int64_t D = c->hidden_size, I = c->intermediate_size;

    layer->bert = net;
    /* 0 and 1 are the dropouts of embeddings and labels. */
    layer->number = 2 + BERT_DROPOUTS * (uint64_t)i;
    layer->module = add(net, list, arena_printf(net->arena, "%lld", (long long)i), "BertLayer");
    layer->module->is_block = true;
    layer->attention = add(net, layer->module, "attention", "BertAttention");
    struct module *self = layer->self = add(net, layer->attention, "self", "BertSelfAttention");
    layer->query = add_linear(net, self, "query", D, D);
    layer->key = add_linear(net, self, "key", D, D);
    layer->value = add_linear(net, self, "value", D, D);
    nn_linears_join((struct module *[]){layer->query, layer->key, layer->value}, 3);
    add_dropout(net, self, c->attention_probs_dropout_prob);
    add_output_modules(net, &layer->attention_output, layer->attention, "BertSelfOutput", D);
    layer->intermediate = add(net, layer->module, "intermediate", "BertIntermediate");
    layer->intermediate_dense = add_linear(net, layer->intermediate, "dense", D, I);
    add_activation(net, layer->intermediate, "intermediate_act_fn");
    add_output_modules(net, &layer->output, layer->module, "BertOutput", I);
}

static void add_pooler(struct bert *net)
{
    int64_t D = net->config.hidden_size;
    net->pooler = add(net, net->inner, "pooler", "BertPooler");
    net->pooler->is_head = true;
    net->pooler_dense = add_linear(net, net->pooler, "dense", D, D);
    add(net, net->pooler, "activation", "Tanh");
}

/* The head is tied to the words' embedding, which is then read after the inner model is done: as a
 * tied Llama's, neither it nor what holds it is a unit below the root's. */
static void add_predictions(struct bert *net)
{
    const struct bert_config *c = &net->config;
    int64_t D = c->hidden_size, V = c->vocab_size;
    struct module *m = net->predictions = add(net, net->cls, "predictions", "BertLMPredictionHead");
    module_add_param(net->arena, m, "bias", net->next_index++, 1, &V,
                     (struct param_init){INIT_UNIFORM, 0, 0});
    net->transform = add(net, m, "transform", "BertPredictionHeadTransform");
    net->transform_dense = add_linear(net, net->transform, "dense", D, D);
    add_activation(net, net->transform, "transform_act_fn");
    net->transform_norm = add_norm(net, net->transform);
    net->decoder = nn_linear_tied_new(net->arena, m, "decoder", D, V, true);
    net->words->is_shared = net->embeddings->is_shared = net->inner->is_shared = true;
}

static void add_heads(struct bert *net, struct module *root)
{
    const struct bert_config *c = &net->config;
    if (c->head == BERT_CLASSIFICATION) {
        double p = c->classifier_dropout < 0 ? c->hidden_dropout_prob : c->classifier_dropout;
        net->labels_dropout = add_dropout(net, root, p);
        net->labels = add_linear(net, root, "classifier", c->hidden_size, c->num_labels);
        net->labels->is_head = true;
        return;
    }
    bool both = c->head == BERT_PRETRAINING;
    net->cls = add(net, root, "cls", both ? "BertPreTrainingHeads" : "BertOnlyMLMHead");
    net->cls->is_head = true;
    add_predictions(net);
    if (both)
        net->labels = add_linear(net, net->cls, "seq_relationship", c->hidden_size, 2);
}

struct module *bert_declare(struct bert *net, int64_t pad_id)
{
    const struct bert_config *c = &net->config;
    struct module *root = module_new(net->arena, "", bert_class_name(c->head), NULL);
    net->inner = add(net, root, "bert", "BertModel");
    add_embeddings(net, pad_id);
    net->encoder = add(net, net->inner, "encoder", "BertEncoder");
    struct module *list = add(net, net->encoder, "layer", "ModuleList");
    list->is_list = true;
    net->layers = arena_array(net->arena, struct bert_layer, c->num_hidden_layers);
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        add_layer(net, list, i);
    if (c->head != BERT_MASKED_LM)
        add_pooler(net);
    add_heads(net, root);
    return root;
}
