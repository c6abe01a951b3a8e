#include "agent/nn/nn_conv.h"

#include "agent/nn/nn_internal.h"

#include <assert.h>

struct module *nn_conv2d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t c_in, int64_t c_out, int64_t kernel)
{
    const char *text =
        arena_printf(arena, "Conv2d(%lld, %lld, kernel_size=(%lld, %lld), stride=(1, 1))",
                     (long long)c_in, (long long)c_out, (long long)kernel, (long long)kernel);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Conv2d", text));
    nn_add_weight_and_bias(arena, m, next_index, 4, (int64_t[]){c_out, c_in, kernel, kernel});
    return m;
}

/* ---- conv2d ---- */

static void conv2d_backward(struct tape *tape, struct tape_op *op)
{
    struct conv2d_shape shape;
    NN_GET_ARGS(op, shape);
    struct tensor *x = op->inputs[0], *y = op->output;
    struct param **params = op->module->params;
    void *dy = op->reads_output ? nn_gradient_through_relu(tape, y) : y->gradient;
    if (!dy)
        return;

    bool add;
    float *dw = tape_param_gradient(params[NN_WEIGHT], &add);
    float *dbias = tape_param_gradient(params[NN_BIAS], &add);
    nn_ops(tape)->conv2d_backward_weights(tape_stream(tape), x->dtype, dw, dbias, x->data, dy,
                                          &shape, add);

    void *dx = tape_gradient(tape, x);
    if (dx)
        nn_ops(tape)->conv2d_backward_data(tape_stream(tape), x->dtype, dx, dy,
                                           params[NN_WEIGHT]->value, &shape);
    tape_accumulate_gradient(tape, x, dx);
}

struct tensor *nn_conv2d(struct tape *tape, struct module *m, struct tensor *x, bool relu)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    const int64_t *w = m->params[NN_WEIGHT]->shape;
    assert(x->dims == 4 && x->shape[3] == w[1]);
    struct conv2d_shape shape = {.B = x->shape[0],
                                 .H = x->shape[1],
                                 .W = x->shape[2],
                                 .C_in = w[1],
                                 .C_out = w[0],
                                 .KH = w[2],
                                 .KW = w[3]};
    int64_t out[] = {shape.B, shape.H - shape.KH + 1, shape.W - shape.KW + 1, shape.C_out};
    struct tensor *y = tape_tensor(tape, 4, out, m->path);
    if (y)
        nn_ops(tape)->conv2d_forward(tape_stream(tape), y->dtype, y->data, x->data,
                                     m->params[NN_WEIGHT]->value, m->params[NN_BIAS]->value, relu,
                                     &shape);
    struct tape_op op = {.backward = conv2d_backward,
                         .module = m,
                         .output = y,
                         .inputs = {x},
                         .reads_inputs = true,
                         .reads_output = relu};
    NN_SET_ARGS(op, shape);
    tape_record(tape, &op);
    tape_leave(tape, m);
    return y;
}

/* ---- max_pool2d and flatten ---- */

static void max_pool2d_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0];
    void *dx = tape_gradient(tape, x);
    if (dx)
        nn_ops(tape)->max_pool2d_backward(tape_stream(tape), x->dtype, dx, op->memory,
                                          op->output->gradient, x->shape[0], x->shape[1],
                                          x->shape[2], x->shape[3]);
    tape_accumulate_gradient(tape, x, dx);
}

struct tensor *nn_max_pool2d(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    assert(x->dims == 4);
    int64_t B = x->shape[0], H = x->shape[1], W = x->shape[2], C = x->shape[3];
    struct tensor *y = tape_tensor(tape, 4, (int64_t[]){B, H / 2, W / 2, C}, "max_pool2d");
    /* Which of the four was the largest: a byte each, instead of all of x and y for backward. */
    uint8_t *index = tape_alloc(tape, (size_t)(B * (H / 2) * (W / 2) * C), "max_pool2d index");
    if (y && index)
        nn_ops(tape)->max_pool2d_forward(tape_stream(tape), y->dtype, y->data, index, x->data, B, H,
                                         W, C);
    tape_record(tape,
                &(struct tape_op){
                    .backward = max_pool2d_backward, .output = y, .inputs = {x}, .memory = index});
    return y;
}

static void flatten_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0];
    void *dx = tape_gradient(tape, x);
    if (dx)
        nn_ops(tape)->channels_last(tape_stream(tape), x->dtype, dx, op->output->gradient,
                                    x->shape[0], x->shape[1], x->shape[2], x->shape[3]);
    tape_accumulate_gradient(tape, x, dx);
}

struct tensor *nn_flatten(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    assert(x->dims == 4);
    int64_t B = x->shape[0];
    struct tensor *y = tape_tensor(tape, 2, (int64_t[]){B, x->count / B}, "flatten");
    if (y)
        /* Images are [B, H, W, C] here, and PyTorch's [B, C, H, W]: weights of the layer behind
         * must mean the same numbers. */
        nn_ops(tape)->channels_first(tape_stream(tape), y->dtype, y->data, x->data, B, x->shape[1],
                                     x->shape[2], x->shape[3]);
    tape_record(tape, &(struct tape_op){.backward = flatten_backward, .output = y, .inputs = {x}});
    return y;
}
