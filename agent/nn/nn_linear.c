#include "agent/nn/nn_linear.h"

#include "agent/nn/nn_fp8.h"
#include "agent/nn/nn_internal.h"
#include "agent/nn/nn_pointwise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- declarations ---- */

void nn_add_weight_and_bias(struct arena *arena, struct module *m, uint64_t *next_index, int dims,
                            const int64_t *shape)
{
    int64_t fan_in = 1;
    for (int d = 1; d < dims; d++)
        fan_in *= shape[d];
    float bound = 1.0f / sqrtf((float)fan_in);
    const struct param_init init = {INIT_UNIFORM, -bound, bound};
    module_add_param(arena, m, "weight", (*next_index)++, dims, shape, init);
    module_add_param(arena, m, "bias", (*next_index)++, 1, shape, init);
}

static struct module *add_linear(struct arena *arena, struct module *parent, const char *name,
                                 int64_t in, int64_t out, bool bias)
{
    const char *text = arena_printf(arena, "Linear(in_features=%lld, out_features=%lld, bias=%s)",
                                    (long long)in, (long long)out, bias ? "True" : "False");
    return module_add(arena, parent, module_new(arena, name, "Linear", text));
}

struct module *nn_linear_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out)
{
    struct module *m = add_linear(arena, parent, name, in, out, true);
    m->is_linear = true;
    nn_add_weight_and_bias(arena, m, next_index, 2, (int64_t[]){out, in});
    return m;
}

static void add_normal(struct arena *arena, struct module *m, uint64_t *next_index,
                       const int64_t *weight, float stddev, int64_t bias)
{
    m->is_linear = true;
    module_add_param(arena, m, "weight", (*next_index)++, 2, weight,
                     (struct param_init){INIT_NORMAL, 0, stddev});
    if (bias)
        module_add_param(arena, m, "bias", (*next_index)++, 1, &bias,
                         (struct param_init){INIT_UNIFORM, 0, 0});
}

struct module *nn_linear_normal_new(struct arena *arena, struct module *parent, const char *name,
                                    uint64_t *next_index, int64_t in, int64_t out, bool bias,
                                    float stddev)
{
    struct module *m = add_linear(arena, parent, name, in, out, bias);
    add_normal(arena, m, next_index, (int64_t[]){out, in}, stddev, bias ? out : 0);
    return m;
}

struct module *nn_linear_tied_new(struct arena *arena, struct module *parent, const char *name,
                                  int64_t in, int64_t out, bool bias)
{
    return add_linear(arena, parent, name, in, out, bias);
}

struct module *nn_conv1d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out, float stddev)
{
    const char *text =
        arena_printf(arena, "Conv1D(nf=%lld, nx=%lld)", (long long)out, (long long)in);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Conv1D", text));
    add_normal(arena, m, next_index, (int64_t[]){in, out}, stddev, out);
    return m;
}

/* ---- the product ---- */

enum { X, GELU_OF }; /* inputs; the second, if x is the GELU of it: x gets no gradient then */

/* What an op is: its place in y, and the layout of its weight. */
struct linear_args {
    int64_t column;
    bool in_out;
};

static struct linear_shape shape_of(const struct tape *tape, const struct module *m,
                                    const struct tensor *x, const struct tensor *y, bool in_out)
{
    const int64_t *w = m->params[NN_WEIGHT]->shape;
    int64_t in = w[!in_out], out = w[in_out];
    return (struct linear_shape){.rows = x->count / in,
                                 .in = in,
                                 .out = out,
                                 .y_stride = y->shape[y->dims - 1],
                                 .in_out = in_out,
                                 .nondeterministic = tape_current(tape)->nondeterministic};
}

void *nn_gradient_through_relu(struct tape *tape, struct tensor *y)
{
    void *dy = tape_own_gradient(tape, y);
    if (dy)
        nn_ops(tape)->relu_backward(tape_stream(tape), y->dtype, dy, y->data, dy, y->count);
    return dy;
}

/* The gradient of z, of which x is the GELU. */
static void backward_through_gelu(struct tape *tape, struct tensor *z, const void *dy,
                                  const void *w, const struct linear_shape *shape)
{
    void *dz = tape_gradient(tape, z);
    if (dz)
        nn_ops(tape)->linear_gelu_backward_data(tape_stream(tape), z->dtype, dz, dy, w, z->data,
                                                shape);
    tape_accumulate_gradient(tape, z, dz);
}

/* In fp8: op->memory is what forward left. */
static void fp8_backward(struct tape *tape, const struct tape_op *op, const void *dy,
                         const struct linear_shape *shape)
{
    const struct module *m = op->module;
    struct tensor *x = op->inputs[0];
    struct nn_fp8_part part = {.out = shape->out};
    bool add;
    part.dw = tape_param_gradient(m->params[NN_WEIGHT], &part.add);
    if (nn_bias(m)) {
        float *dbias = tape_param_gradient(m->params[NN_BIAS], &add);
        nn_ops(tape)->linear_backward_bias(tape_stream(tape), x->dtype, dbias, dy, shape, add);
    }
    nn_fp8_backward(tape, x, m->params[NN_WEIGHT], dy, op->memory, shape, &part, 1);
}

static void linear_backward(struct tape *tape, struct tape_op *op)
{
    struct linear_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[X], *y = op->output;
    struct module *m = op->module;
    const struct linear_shape shape = shape_of(tape, m, x, y, a.in_out);
    void *dy = op->reads_output ? nn_gradient_through_relu(tape, y)
                                : nn_at(y->gradient, y->dtype, a.column);
    if (!dy)
        return;
    if (op->memory) {
        fp8_backward(tape, op, dy, &shape);
        return;
    }

    bool add;
    float *dw = tape_param_gradient(m->params[NN_WEIGHT], &add);
    float *dbias = nn_bias(m) ? tape_param_gradient(m->params[NN_BIAS], &add) : NULL;
    nn_ops(tape)->linear_backward_weights(tape_stream(tape), x->dtype, dw, dbias, x->data, dy,
                                          &shape, add);
    if (op->inputs[GELU_OF]) {
        backward_through_gelu(tape, op->inputs[GELU_OF], dy, m->params[NN_WEIGHT]->value, &shape);
        return;
    }
    /* Three linears may read one x (q, k, v): the products add up in its gradient, without a buffer
     * each. */
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (dx)
        nn_ops(tape)->linear_backward_data(tape_stream(tape), x->dtype, dx, dy,
                                           m->params[NN_WEIGHT]->value, &shape, add);
}

/* The op, whose value is there. memory: of fp8, else NULL. z: NULL, or what x is the GELU of:
 * consumed, too. */
static void record(struct tape *tape, struct module *m, struct tensor *x, struct tensor *z,
                   struct tensor *y, bool relu, void *memory, const struct linear_args *a)
{
    struct tape_op op = {.backward = linear_backward,
                         .module = m,
                         .output = y,
                         .inputs = {[X] = x, [GELU_OF] = z},
                         .reads_inputs = true,
                         .reads_output = relu,
                         .memory = memory};
    NN_SET_ARGS(op, *a);
    tape_record(tape, &op);
}

void *nn_multiply(struct tape *tape, const struct module *m, const struct tensor *x, void *y,
                  enum dtype t_y, bool relu, const struct linear_shape *shape)
{
    const struct param *w = m->params[NN_WEIGHT];
    if (w->fp8) {
        assert(x->dtype == DTYPE_BF16 && t_y == DTYPE_BF16);
        return nn_fp8_forward(tape, y, x, w, nn_bias(m), relu, shape);
    }
    nn_ops(tape)->linear_forward(tape_stream(tape), x->dtype, t_y, y, x->data, w->value, nn_bias(m),
                                 relu, shape);
    return NULL;
}

/* The op, between the borders of its module; y is the caller's, and may be NULL on a
 * failed tape. */
static void apply(struct tape *tape, struct module *m, struct tensor *x, struct tensor *z,
                  struct tensor *y, bool relu, const struct linear_args *a)
{
    void *memory = NULL;
    if (y) {
        const struct linear_shape shape = shape_of(tape, m, x, y, a->in_out);
        assert(x->shape[x->dims - 1] == shape.in && a->column + shape.out <= shape.y_stride);
        memory =
            nn_multiply(tape, m, x, nn_at(y->data, y->dtype, a->column), y->dtype, relu, &shape);
    }
    record(tape, m, x, z, y, relu, memory, a);
}

struct tensor *nn_new_columns(struct tape *tape, const struct tensor *x, int64_t width,
                              const char *what)
{
    if (tape_failed(tape))
        return NULL;
    int64_t shape[MODULE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->dims - 1] = width;
    return tape_tensor(tape, x->dims, shape, what);
}

void nn_linear_into(struct tape *tape, struct module *m, struct tensor *x, struct tensor *y,
                    int64_t column)
{
    apply(tape, m, x, NULL, y, false, &(struct linear_args){.column = column});
}

static struct tensor *apply_to_new(struct tape *tape, struct module *m, struct tensor *x, bool relu,
                                   const struct linear_args *a)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    struct tensor *y = nn_new_columns(tape, x, m->params[NN_WEIGHT]->shape[a->in_out], m->path);
    apply(tape, m, x, NULL, y, relu, a);
    tape_leave(tape, m);
    return y;
}

struct tensor *nn_linear(struct tape *tape, struct module *m, struct tensor *x, bool relu)
{
    return apply_to_new(tape, m, x, relu, &(struct linear_args){.in_out = false});
}

struct tensor *nn_conv1d(struct tape *tape, struct module *m, struct tensor *x)
{
    return apply_to_new(tape, m, x, false, &(struct linear_args){.in_out = true});
}

/* ---- two products with a GELU between ---- */

/* Whether the first product's op makes the GELU as well. What backward makes again, it makes of the
 * rounded z: that must be forward's value. Evaluation takes less memory without. */
static bool makes_gelu(const struct tape *tape, const struct module *up)
{
    const struct tape_pass *pass = tape_current(tape);
    return nn_bias(up) && pass->training && pass->nondeterministic &&
           tape_checkpointing(tape) != TAPE_CHECKPOINTING_SELECTIVE;
}

/* gelu(up(x)). *ret_z: NULL, or what that is the GELU of, if backward asks for it: the caller's. */
static struct tensor *up_and_gelu(struct tape *tape, struct module *up, struct tensor *x, bool tanh,
                                  struct tensor **ret_z)
{
    bool keeps = tanh && tape_is_recording(tape);
    struct tensor *z = nn_conv1d(tape, up, x);
    *ret_z = keeps ? tape_retain(z) : NULL;
    return nn_gelu(tape, z, tanh);
}

/* The same in one op. */
static struct tensor *up_with_gelu(struct tape *tape, struct module *up, struct tensor *x,
                                   struct tensor **ret_z)
{
    const struct linear_args a = {.in_out = true};
    *ret_z = NULL;
    tape_enter(tape, up);
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    int64_t width = up->params[NN_WEIGHT]->shape[1];
    struct tensor *z = nn_new_columns(tape, x, width, up->path);
    struct tensor *y = nn_new_columns(tape, x, width, "gelu");
    if (z && y) {
        const struct linear_shape shape = shape_of(tape, up, x, z, a.in_out);
        nn_ops(tape)->linear_gelu_forward(tape_stream(tape), x->dtype, y->data, z->data, x->data,
                                          up->params[NN_WEIGHT]->value, nn_bias(up), &shape);
    }
    record(tape, up, x, NULL, z, false, NULL, &a);
    tape_leave(tape, up);
    *ret_z = tape_is_recording(tape) ? tape_retain(z) : NULL;
    return nn_gelu_made(tape, z, y, true);
}

struct tensor *nn_conv1d_mlp(struct tape *tape, struct module *up, struct module *down,
                             struct tensor *x, bool tanh)
{
    if (up->params[NN_WEIGHT]->fp8 ||
        down->params[NN_WEIGHT]->fp8) /* whose products know no GELU */
        return nn_conv1d(tape, down, nn_gelu(tape, nn_conv1d(tape, up, x), tanh));
    struct tensor *z;
    bool together = tanh && !tape_failed(tape) && makes_gelu(tape, up);
    struct tensor *y =
        together ? up_with_gelu(tape, up, x, &z) : up_and_gelu(tape, up, x, tanh, &z);
    tape_enter(tape, down);
    if (tape_failed(tape)) {
        tape_release(tape, y);
        tape_release(tape, z);
        return NULL;
    }
    const struct linear_args a = {.in_out = true};
    struct tensor *out = nn_new_columns(tape, y, down->params[NN_WEIGHT]->shape[1], down->path);
    apply(tape, down, y, z, out, false, &a);
    tape_leave(tape, down);
    return out;
}
