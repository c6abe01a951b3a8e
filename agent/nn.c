#include "agent/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- declarations ---- */

static void add_weight_and_bias(struct arena *arena, struct module *m, uint64_t *next_index,
                                int dims, const int64_t *shape)
{
    int64_t fan_in = 1;
    for (int d = 1; d < dims; d++)
        fan_in *= shape[d];
    float bound = 1.0f / sqrtf((float)fan_in);
    const struct param_init init = {INIT_UNIFORM, -bound, bound};
    module_add_param(arena, m, "weight", (*next_index)++, dims, shape, init);
    module_add_param(arena, m, "bias", (*next_index)++, 1, shape, init);
}

struct module *nn_conv2d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t c_in, int64_t c_out, int64_t kernel)
{
    const char *text =
        arena_printf(arena, "Conv2d(%lld, %lld, kernel_size=(%lld, %lld), stride=(1, 1))",
                     (long long)c_in, (long long)c_out, (long long)kernel, (long long)kernel);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Conv2d", text));
    add_weight_and_bias(arena, m, next_index, 4, (int64_t[]){c_out, c_in, kernel, kernel});
    return m;
}

struct module *nn_linear_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out)
{
    const char *text = arena_printf(arena, "Linear(in_features=%lld, out_features=%lld, bias=True)",
                                    (long long)in, (long long)out);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Linear", text));
    add_weight_and_bias(arena, m, next_index, 2, (int64_t[]){out, in});
    return m;
}

struct module *nn_dropout_new(struct arena *arena, struct module *parent, const char *name, float p)
{
    assert(p >= 0 && p < 1);
    const char *text = arena_printf(arena, "Dropout(p=%g, inplace=False)", p);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Dropout", text));
    m->dropout = p;
    return m;
}

/* ---- helpers ---- */

static const struct ops *ops_of(const struct tape *tape)
{
    return device_ops(stream_device(tape_stream(tape)));
}

/* The numbers an op keeps for its backward. */
#define ARGS_SET(op, value)                                                                        \
    do {                                                                                           \
        _Static_assert(sizeof(value) <= sizeof(op).args, "too many numbers for an op");            \
        memcpy((op).args, &(value), sizeof(value));                                                \
    } while (0)
#define ARGS_GET(op, value) memcpy(&(value), (op)->args, sizeof(value))

enum { WEIGHT, BIAS }; /* module.params of Conv2d and Linear */

/* The gradient of an output whose op ended in relu(): through the relu, in place. */
static void *gradient_through_relu(struct tape *tape, struct tensor *y)
{
    ops_of(tape)->relu_backward(tape_stream(tape), y->dtype, y->gradient, y->data, y->gradient,
                                y->count);
    return y->gradient;
}

/* ---- conv2d ---- */

static void conv2d_backward(struct tape *tape, struct tape_op *op)
{
    struct conv2d_shape shape;
    ARGS_GET(op, shape);
    struct tensor *x = op->inputs[0], *y = op->output;
    struct param **params = op->module->params;
    void *dy = op->reads_output ? gradient_through_relu(tape, y) : y->gradient;

    bool add;
    float *dw = tape_param_gradient(params[WEIGHT], &add);
    float *dbias = tape_param_gradient(params[BIAS], &add);
    ops_of(tape)->conv2d_backward_weights(tape_stream(tape), dw, dbias, x->data, dy, &shape, add);

    void *dx = tape_gradient(tape, x);
    if (dx)
        ops_of(tape)->conv2d_backward_data(tape_stream(tape), dx, dy, params[WEIGHT]->value,
                                           &shape);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_conv2d(struct tape *tape, struct module *m, struct tensor *x, bool relu)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    const int64_t *w = m->params[WEIGHT]->shape;
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
        ops_of(tape)->conv2d_forward(tape_stream(tape), y->data, x->data, m->params[WEIGHT]->value,
                                     m->params[BIAS]->value, relu, &shape);
    struct tape_op op = {.backward = conv2d_backward,
                         .module = m,
                         .output = y,
                         .inputs = {x},
                         .reads_inputs = true,
                         .reads_output = relu};
    ARGS_SET(op, shape);
    tape_record(tape, &op);
    tape_leave(tape, m);
    return y;
}

/* ---- linear ---- */

static void linear_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0], *y = op->output;
    struct param **params = op->module->params;
    const struct linear_shape shape =
        linear_dense(x->shape[0], params[WEIGHT]->shape[1], params[WEIGHT]->shape[0]);
    void *dy = op->reads_output ? gradient_through_relu(tape, y) : y->gradient;

    bool add;
    float *dw = tape_param_gradient(params[WEIGHT], &add);
    float *dbias = tape_param_gradient(params[BIAS], &add);
    ops_of(tape)->linear_backward_weights(tape_stream(tape), x->dtype, dw, dbias, x->data, dy,
                                          &shape, add);
    void *dx = tape_gradient(tape, x);
    if (dx)
        ops_of(tape)->linear_backward_data(tape_stream(tape), x->dtype, dx, dy,
                                           params[WEIGHT]->value, &shape, false);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_linear(struct tape *tape, struct module *m, struct tensor *x, bool relu)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    const struct linear_shape shape =
        linear_dense(x->shape[0], m->params[WEIGHT]->shape[1], m->params[WEIGHT]->shape[0]);
    assert(x->dims == 2 && x->shape[1] == shape.in);
    struct tensor *y = tape_tensor(tape, 2, (int64_t[]){shape.rows, shape.out}, m->path);
    if (y)
        ops_of(tape)->linear_forward(tape_stream(tape), x->dtype, y->dtype, y->data, x->data,
                                     m->params[WEIGHT]->value, m->params[BIAS]->value, relu,
                                     &shape);
    tape_record(tape, &(struct tape_op){.backward = linear_backward,
                                        .module = m,
                                        .output = y,
                                        .inputs = {x},
                                        .reads_inputs = true,
                                        .reads_output = relu});
    tape_leave(tape, m);
    return y;
}

/* ---- dropout ---- */

struct dropout_args {
    int64_t rows, cols;
    uint64_t key;
};

static void dropout_queue(struct tape *tape, float p, const struct dropout_args *a, void *y,
                          const void *x)
{
    const struct tape_pass *pass = tape_current(tape);
    ops_of(tape)->dropout(tape_stream(tape), tape_dtype(tape), y, x, a->rows, a->cols, p, a->key,
                          pass->first_row, pass->row_stride);
}

static void dropout_backward(struct tape *tape, struct tape_op *op)
{
    struct dropout_args a;
    ARGS_GET(op, a);
    void *gradient = tape_take_gradient(op->output);
    dropout_queue(tape, op->module->dropout, &a, gradient, gradient);
    tape_give_gradient(tape, op->inputs[0], gradient);
}

struct tensor *nn_dropout(struct tape *tape, struct module *m, struct tensor *x, uint64_t layer)
{
    const struct tape_pass *pass = tape_current(tape);
    if (tape_failed(tape) || !pass->training || m->dropout == 0)
        return x;
    struct dropout_args a = {x->shape[0], x->count / x->shape[0],
                             random_key(pass->seed, pass->step, layer, 0)};
    struct tensor *y = tape_tensor(tape, x->dims, x->shape, m->path);
    if (y)
        dropout_queue(tape, m->dropout, &a, y->data, x->data);
    struct tape_op op = {.backward = dropout_backward, .module = m, .output = y, .inputs = {x}};
    ARGS_SET(op, a);
    tape_record(tape, &op);
    return y;
}

/* ---- max_pool2d and flatten ---- */

static void max_pool2d_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0];
    void *dx = tape_gradient(tape, x);
    if (dx)
        ops_of(tape)->max_pool2d_backward(tape_stream(tape), dx, op->memory, op->output->gradient,
                                          x->shape[0], x->shape[1], x->shape[2], x->shape[3]);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_max_pool2d(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    assert(x->dims == 4);
    int64_t B = x->shape[0], H = x->shape[1], W = x->shape[2], C = x->shape[3];
    struct tensor *y = tape_tensor(tape, 4, (int64_t[]){B, H / 2, W / 2, C}, "max_pool2d");
    uint8_t *index = tape_alloc(tape, (size_t)(B * (H / 2) * (W / 2) * C), "max_pool2d index");
    if (y && index)
        ops_of(tape)->max_pool2d_forward(tape_stream(tape), y->data, index, x->data, B, H, W, C);
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
        ops_of(tape)->channels_last(tape_stream(tape), dx, op->output->gradient, x->shape[0],
                                    x->shape[1], x->shape[2], x->shape[3]);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_flatten(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    assert(x->dims == 4);
    int64_t B = x->shape[0];
    struct tensor *y = tape_tensor(tape, 2, (int64_t[]){B, x->count / B}, "flatten");
    if (y)
        ops_of(tape)->channels_first(tape_stream(tape), y->data, x->data, B, x->shape[1],
                                     x->shape[2], x->shape[3]);
    tape_record(tape, &(struct tape_op){.backward = flatten_backward, .output = y, .inputs = {x}});
    return y;
}

/* ---- loss ---- */

struct cross_entropy_args {
    const int32_t *target;
    float scale;
};

/* The log-probabilities turn into the gradient where they are. */
static void cross_entropy_backward(struct tape *tape, struct tape_op *op)
{
    struct cross_entropy_args a;
    ARGS_GET(op, a);
    struct tensor *x = op->inputs[0];
    float *gradient = op->memory;
    op->memory = NULL;
    ops_of(tape)->nll_log_softmax_backward(tape_stream(tape), gradient, gradient, a.target, a.scale,
                                           x->shape[0], x->shape[1]);
    tape_give_gradient(tape, x, gradient);
}

void nn_cross_entropy(struct tape *tape, struct tensor *x, const int32_t *target, float scale,
                      double *sums)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return;
    }
    assert(x->dims == 2);
    int64_t rows = x->shape[0], cols = x->shape[1];
    float *y = tape_alloc(tape, (size_t)x->count * sizeof(float), "log-probabilities");
    if (y) {
        ops_of(tape)->log_softmax(tape_stream(tape), y, x->data, rows, cols);
        ops_of(tape)->nll_loss(tape_stream(tape), sums, y, target, rows, cols);
    }
    struct cross_entropy_args a = {target, scale};
    struct tape_op op = {.backward = cross_entropy_backward, .inputs = {x}, .memory = y};
    ARGS_SET(op, a);
    tape_record(tape, &op);
}
