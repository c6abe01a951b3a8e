#include "agent/nn/nn_norm.h"

#include "agent/nn/nn_parts.h"

/* ---- declarations ---- */

static void add_constant(struct arena *arena, struct module *m, const char *name,
                         uint64_t *next_index, int64_t D, float value)
{
    module_add_param(arena, m, name, (*next_index)++, 1, &D,
                     (struct param_init){INIT_UNIFORM, value, value});
}

/* A number as Python prints it: 1e-05, 0.001. */
static const char *python_number(struct arena *arena, double x)
{
    return arena_printf(arena, "%.12g", x);
}

struct module *nn_rms_norm_new(struct arena *arena, struct module *parent, const char *name,
                               const char *class_name, uint64_t *next_index, int64_t D, double eps)
{
    const char *text = arena_printf(arena, "%s((%lld,), eps=%s)", class_name, (long long)D,
                                    python_number(arena, eps));
    struct module *m = module_add(arena, parent, module_new(arena, name, class_name, text));
    add_constant(arena, m, "weight", next_index, D, 1);
    return m;
}

struct module *nn_layer_norm_new(struct arena *arena, struct module *parent, const char *name,
                                 uint64_t *next_index, int64_t D, double eps)
{
    const char *text =
        arena_printf(arena, "LayerNorm((%lld,), eps=%s, elementwise_affine=True, bias=True)",
                     (long long)D, python_number(arena, eps));
    struct module *m = module_add(arena, parent, module_new(arena, name, "LayerNorm", text));
    add_constant(arena, m, "weight", next_index, D, 1);
    add_constant(arena, m, "bias", next_index, D, 0);
    return m;
}

/* The numbers that both keep. */
struct norm_args {
    int64_t rows, D;
    float eps;
};

/* A tensor like x for the output, and `per_row` numbers of each row for backward; false if the tape
 * has failed. */
static bool prepare(struct tape *tape, const struct module *m, const struct tensor *x, float eps,
                    int64_t per_row, struct norm_args *a, struct tape_op *op)
{
    a->D = m->params[NN_WEIGHT]->count;
    a->rows = x->count / a->D;
    a->eps = eps;
    op->output = tape_tensor(tape, x->dims, x->shape, m->path);
    op->memory = tape_alloc(tape, (size_t)(a->rows * per_row) * sizeof(float), m->path);
    NN_SET_ARGS(*op, *a);
    return op->memory != NULL;
}

/* ---- rms_norm ---- */

static void rms_norm_make(struct tape *tape, const struct tape_op *op)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    const struct tensor *x = op->inputs[0];
    nn_ops(tape)->rms_norm_forward(tape_stream(tape), x->dtype, op->output->data, op->memory,
                                   x->data, op->module->params[NN_WEIGHT]->value, a.rows, a.D,
                                   a.eps);
}

static void rms_norm_backward(struct tape *tape, struct tape_op *op)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0];
    struct param *w = op->module->params[NN_WEIGHT];
    void *gradient = tape_take_gradient(op->output);
    bool add;
    float *dw = tape_param_gradient(w, &add);
    nn_ops(tape)->rms_norm_backward(tape_stream(tape), x->dtype, gradient, dw, gradient, x->data,
                                    w->value, op->memory, a.rows, a.D, add);
    tape_give_gradient(tape, x, gradient);
}

struct tensor *nn_rms_norm(struct tape *tape, struct module *m, struct tensor *x, float eps)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    struct norm_args a;
    struct tape_op op = {.backward = rms_norm_backward,
                         .remake = rms_norm_make,
                         .module = m,
                         .inputs = {x},
                         .reads_inputs = true};
    if (prepare(tape, m, x, eps, 1, &a, &op))
        rms_norm_make(tape, &op);
    tape_record(tape, &op);
    tape_leave(tape, m);
    return op.output;
}

/* ---- layer_norm ---- */

static void layer_norm_make(struct tape *tape, const struct tape_op *op)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    const struct tensor *x = op->inputs[0];
    nn_ops(tape)->layer_norm_forward(tape_stream(tape), x->dtype, op->output->data, op->memory,
                                     x->data, op->module->params[NN_WEIGHT]->value,
                                     nn_bias(op->module), a.rows, a.D, a.eps);
}

static void layer_norm_backward(struct tape *tape, struct tape_op *op)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0];
    struct param *w = op->module->params[NN_WEIGHT];
    void *dx = tape_gradient(tape, x);
    bool add;
    float *dw = tape_param_gradient(w, &add);
    float *dbias = tape_param_gradient(op->module->params[NN_BIAS], &add);
    if (dx)
        nn_ops(tape)->layer_norm_backward(tape_stream(tape), x->dtype, dx, dw, dbias,
                                          op->output->gradient, x->data, w->value, op->memory,
                                          a.rows, a.D, add);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_layer_norm(struct tape *tape, struct module *m, struct tensor *x, float eps)
{
    tape_enter(tape, m);
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    struct norm_args a;
    struct tape_op op = {.backward = layer_norm_backward,
                         .remake = layer_norm_make,
                         .module = m,
                         .inputs = {x},
                         .reads_inputs = true};
    if (prepare(tape, m, x, eps, 2, &a, &op))
        layer_norm_make(tape, &op);
    tape_record(tape, &op);
    tape_leave(tape, m);
    return op.output;
}
