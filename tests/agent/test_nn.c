/* Each layer on the tape: its gradients against finite differences of its own forward. */
#include "agent/nn/nn.h"
#include "kernels/random.h"
#include "tests/agent/taped.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A net around one layer: the value of parameter `x` comes onto the tape as an activation, goes
 * through the layer, and what comes out is taken as [rows, classes] into the loss. */
struct net {
    struct taped *f;
    struct module *x, *layer;
    bool relu;
    struct tensor *(*apply)(struct net *net, struct tensor *x);
    int32_t target[4];
};

static void source_backward(struct tape *tape, struct tape_op *op)
{
    bool add;
    float *gradient = tape_param_gradient(op->module->params[0], &add);
    assert_false(add);
    stream_copy(tape_stream(tape), gradient, op->output->gradient,
                (size_t)op->output->count * sizeof(float));
}

static struct tensor *source(struct tape *tape, struct module *m)
{
    const struct param *p = m->params[0];
    struct tensor *x = tape_tensor(tape, p->dims, p->shape, "x");
    assert_non_null(x);
    stream_copy(tape_stream(tape), x->data, p->value, (size_t)p->count * sizeof(float));
    tape_record(tape, &(struct tape_op){.backward = source_backward, .module = m, .output = x});
    return x;
}

/* The loss; with its gradients if `backward`. */
static double run(struct net *net, bool backward)
{
    struct taped *f = net->f;
    struct error err;
    double sums[3] = {0};
    tape_begin(f->tape, &(struct tape_pass){.training = true, .seed = 3, .row_stride = 1});
    struct tensor *y = net->apply(net, source(f->tape, net->x));
    assert_non_null(y);
    y->dims = 2; /* dense: the rows, and all the rest as classes */
    y->shape[1] = y->count / y->shape[0];
    nn_cross_entropy(f->tape, y, net->target, 0.5f, sums);
    assert_ok(backward ? tape_backward(f->tape, &err) : tape_finish(f->tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    return 0.5 * sums[0];
}

static struct tensor *conv(struct net *net, struct tensor *x)
{
    return nn_conv2d(net->f->tape, net->layer, x, net->relu);
}

static struct tensor *linear(struct net *net, struct tensor *x)
{
    return nn_linear(net->f->tape, net->layer, x, net->relu);
}

static struct tensor *pool(struct net *net, struct tensor *x)
{
    return nn_max_pool2d(net->f->tape, x);
}

static struct tensor *dropout(struct net *net, struct tensor *x)
{
    return nn_dropout(net->f->tape, net->layer, x, 5);
}

static struct tensor *flatten(struct net *net, struct tensor *x)
{
    return nn_flatten(net->f->tape, x);
}

static struct tensor *rms_norm(struct net *net, struct tensor *x)
{
    return nn_rms_norm(net->f->tape, net->layer, x, 1e-2f);
}

static struct tensor *layer_norm(struct net *net, struct tensor *x)
{
    return nn_layer_norm(net->f->tape, net->layer, x, 1e-2f);
}

/* The stream's gradient comes from both sides of the norm. */
static struct tensor *residual_rms_norm(struct net *net, struct tensor *x)
{
    struct tape *tape = net->f->tape;
    struct tensor *sum, *y = nn_gelu(tape, tape_retain(x), true);
    y = nn_add_rms_norm(tape, net->layer, x, y, &sum, 1e-2f);
    return nn_add(tape, sum, y);
}

static struct tensor *residual_layer_norm(struct net *net, struct tensor *x)
{
    struct tape *tape = net->f->tape;
    struct tensor *y = nn_gelu(tape, tape_retain(x), true);
    return nn_add_layer_norm(tape, net->layer, x, y, NULL, 1e-2f);
}

static struct tensor *conv1d(struct net *net, struct tensor *x)
{
    return nn_conv1d(net->f->tape, net->layer, x);
}

/* The same product in the first and in the last columns of one tensor. */
static struct tensor *linear_into(struct net *net, struct tensor *x)
{
    struct tape *tape = net->f->tape;
    return nn_linears(tape, (struct module *[]){net->layer, net->layer}, 2, x, "y");
}

static struct tensor *swiglu(struct net *net, struct tensor *x)
{
    return nn_swiglu(net->f->tape, x);
}

static struct tensor *gelu(struct net *net, struct tensor *x)
{
    return nn_gelu(net->f->tape, x, false);
}

static struct tensor *gelu_tanh(struct net *net, struct tensor *x)
{
    return nn_gelu(net->f->tape, x, true);
}

/* x + gelu(x): the gradients of both ways add up. */
static struct tensor *residual(struct net *net, struct tensor *x)
{
    struct tape *tape = net->f->tape;
    tape_retain(x);
    return nn_add(tape, x, nn_gelu(tape, x, true));
}

/* Two query heads of width 4 that share one key head, on [2, 3, 16]. */
static const struct nn_heads shared_heads = {2, 1, 4};
static const float cosines[] = {1, 1, 0.6f, 0.8f, -0.8f, 0.28f};
static const float sines[] = {0, 0, 0.8f, 0.6f, 0.6f, 0.96f};

static struct tensor *attend(struct tape *tape, struct tensor *x, float dropout, uint64_t layer)
{
    struct nn_attention_how how = nn_attention_causal(&shared_heads);
    how.dropout = dropout;
    how.layer = layer;
    return nn_attention(tape, x, NULL, &shared_heads, &how);
}

static struct tensor *attention(struct net *net, struct tensor *x)
{
    return attend(net->f->tape, x, 0, 0);
}

static struct tensor *attention_with_dropout(struct net *net, struct tensor *x)
{
    return attend(net->f->tape, x, 0.3f, 2);
}

static struct tensor *turned_attention(struct net *net, struct tensor *x)
{
    struct tape *tape = net->f->tape;
    x = nn_rope(tape, x, &shared_heads, cosines, sines);
    return attend(tape, x, 0, 0);
}

/* Twice with one bias by distance: its gradients add up. The second time one sequence is short. */
static struct tensor *biased_attention(struct net *net, struct tensor *x)
{
    static const int32_t distances[] = {0, 1, 2, 3, 4}, key_counts[] = {3, 2};
    struct tape *tape = net->f->tape;
    struct nn_attention_how how = {.scale = 1};
    struct tensor *bias = nn_embedding(tape, net->layer, distances, 1, 5);
    tape_retain(x);
    struct tensor *y = nn_attention(tape, x, tape_retain(bias), &shared_heads, &how);
    how.key_counts = key_counts;
    x = nn_attention(tape, x, bias, &shared_heads, &how);
    return nn_add(tape, y, nn_gelu(tape, x, false));
}

/* Three queries of each sequence look at its own three keys and values. */
static struct tensor *cross_attention(struct net *net, struct tensor *x)
{
    static const int32_t key_counts[] = {1, 3};
    struct nn_attention_how how = {.scale = 0.5f, .key_counts = key_counts};
    struct tensor *q = linear(net, tape_retain(x));
    return nn_cross_attention(net->f->tape, q, x, &shared_heads, &how);
}

static struct tensor *geglu(struct net *net, struct tensor *x)
{
    return nn_geglu(net->f->tape, x);
}

static struct tensor *hyperbolic(struct net *net, struct tensor *x)
{
    return nn_tanh(net->f->tape, x);
}

static struct tensor *scale(struct net *net, struct tensor *x)
{
    return nn_scale(net->f->tape, x, -1.5f);
}

static struct tensor *first_token(struct net *net, struct tensor *x)
{
    return nn_first_token(net->f->tape, x);
}

/* Twice: the second gradient is added to the first. */
static struct tensor *first_tokens(struct net *net, struct tensor *x)
{
    struct tensor *y = nn_first_token(net->f->tape, tape_retain(x));
    return nn_add(net->f->tape, y, first_token(net, x));
}

static struct tensor *nothing(struct net *net, struct tensor *x)
{
    (void)net;
    return x;
}

/* The same layer twice: its parameters' gradients add up. */
static struct tensor *linear_twice(struct net *net, struct tensor *x)
{
    return linear(net, linear(net, x));
}

static void bind(struct arena *arena, struct param *p)
{
    float *value = arena_array(arena, float, p->count);
    for (int64_t i = 0; i < p->count; i++)
        value[i] = 2 * random_uniform(p->index + 1, (uint64_t)i) - 1;
    p->value = value;
    p->gradient = arena_array(arena, float, p->count);
}

/* The slope is (f(w + h) - f(w - h)) / 2h. The loss is of order 1 in float32, so rounding gives it
 * an error of about 1e-7 / h = 1e-4, and curvature one of h^2; no input lies within h of a kink. */
static void check_gradient(struct net *net, struct param *p)
{
    const float h = 1e-3f;
    float *value = (float *)(uintptr_t)p->value; /* bind() made it */
    assert_true(p->gradient_written);
    for (int64_t i = 0; i < p->count; i++) {
        float kept = value[i];
        value[i] = kept + h;
        double up = run(net, false);
        value[i] = kept - h;
        double down = run(net, false);
        value[i] = kept;
        double slope = (up - down) / (2 * (double)h);
        if (!(fabs(slope - (double)p->gradient[i]) < 1e-3))
            fail_msg("%s[%d]: gradient %g, slope %g", p->name, (int)i, (double)p->gradient[i],
                     slope);
    }
}

static struct module *new_layer(struct taped *f, struct module *root, const char *name)
{
    uint64_t index = 1;
    if (strcmp(name, "conv") == 0)
        return nn_conv2d_new(f->arena, root, name, &index, 2, 3, 3);
    if (strcmp(name, "linear") == 0)
        return nn_linear_new(f->arena, root, name, &index, 6, 6);
    if (strcmp(name, "dropout") == 0)
        return nn_dropout_new(f->arena, root, name, 0.4f);
    if (strcmp(name, "rms_norm") == 0)
        return nn_rms_norm_new(f->arena, root, name, "LlamaRMSNorm", &index, 5, 1e-2);
    if (strcmp(name, "layer_norm") == 0)
        return nn_layer_norm_new(f->arena, root, name, &index, 5, 1e-2);
    if (strcmp(name, "conv1d") == 0)
        return nn_conv1d_new(f->arena, root, name, &index, 6, 5, 0.02f);
    if (strcmp(name, "no bias") == 0)
        return nn_linear_normal_new(f->arena, root, name, &index, 6, 6, false, 0.02f);
    if (strcmp(name, "wide linear") == 0)
        return nn_linear_new(f->arena, root, name, &index, 8, 8);
    if (strcmp(name, "embedding") == 0)
        return nn_embedding_new(f->arena, root, name, &index, 5, 2, 1);
    return NULL;
}

static void gradients_are_the_slopes_of_the_loss(void **state)
{
    struct taped *f = *state;
    static const struct {
        const char *layer;
        struct tensor *(*apply)(struct net *net, struct tensor *x);
        bool relu;
        int dims;
        int64_t shape[4];
    } rows[] = {
        {"conv", conv, false, 4, {2, 5, 4, 2}},
        {"conv", conv, true, 4, {2, 4, 5, 2}},
        {"linear", linear, false, 2, {3, 6}},
        {"linear", linear, true, 2, {4, 6}},
        {"linear", linear_twice, true, 2, {3, 6}},
        {"dropout", dropout, false, 4, {2, 3, 2, 2}},
        {"pool", pool, false, 4, {2, 5, 4, 3}},
        {"flatten", flatten, false, 4, {2, 2, 3, 4}},
        {"cross entropy", nothing, false, 2, {4, 7}},
        {"rms_norm", rms_norm, false, 3, {2, 3, 5}},
        {"layer_norm", layer_norm, false, 3, {2, 3, 5}},
        {"rms_norm", residual_rms_norm, false, 3, {2, 3, 5}},
        {"layer_norm", residual_layer_norm, false, 3, {2, 3, 5}},
        {"conv1d", conv1d, false, 2, {4, 6}},
        {"linear", linear_into, false, 2, {4, 6}},
        {"no bias", linear_into, false, 2, {3, 6}},
        {"swiglu", swiglu, false, 2, {3, 8}},
        {"gelu", gelu, false, 2, {3, 5}},
        {"gelu", gelu_tanh, false, 2, {3, 5}},
        {"add", residual, false, 2, {3, 5}},
        {"attention", attention, false, 3, {2, 3, 16}},
        {"attention", attention_with_dropout, false, 3, {2, 3, 16}},
        {"embedding", biased_attention, false, 3, {2, 3, 16}},
        {"wide linear", cross_attention, false, 3, {2, 3, 8}},
        {"geglu", geglu, false, 2, {3, 8}},
        {"tanh", hyperbolic, false, 2, {3, 5}},
        {"scale", scale, false, 2, {3, 5}},
        {"first token", first_token, false, 3, {3, 2, 4}},
        {"first token", first_tokens, false, 3, {3, 2, 4}},
        {"rope", turned_attention, false, 3, {2, 3, 16}},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct module *root = module_new(f->arena, "", "Net", NULL);
        struct net net = {.f = f,
                          .x = module_add(f->arena, root, module_new(f->arena, "x", "X", NULL)),
                          .layer = new_layer(f, root, rows[i].layer),
                          .relu = rows[i].relu,
                          .apply = rows[i].apply,
                          .target = {0, 3, 2, 1}};
        module_add_param(f->arena, net.x, rows[i].layer, 0, rows[i].dims, rows[i].shape,
                         (struct param_init){INIT_UNIFORM, 0, 0});
        bind(f->arena, net.x->params[0]);
        for (int k = 0; net.layer && k < net.layer->param_count; k++)
            bind(f->arena, net.layer->params[k]);
        run(&net, true);
        check_gradient(&net, net.x->params[0]);
        for (int k = 0; net.layer && k < net.layer->param_count; k++)
            check_gradient(&net, net.layer->params[k]);
    }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, taped_setup, taped_teardown)
    const struct CMUnitTest tests[] = {
        ROW(gradients_are_the_slopes_of_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
