#include "agent/nn/nn_norm.h"

#include "agent/nn/nn_internal.h"
#include "agent/nn/nn_pointwise.h"

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

/* The numbers that an op keeps. */
struct norm_args {
    int64_t rows, D;
    float eps;
    bool root_mean_square; /* else nn.LayerNorm */
};

/* residual: NULL, or what is added to x first. */
static void norm_queue(struct tape *tape, const struct tape_op *op, const void *residual)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    const struct tensor *x = op->inputs[0], *y = op->output;
    const void *w = op->module->params[NN_WEIGHT]->value;
    if (a.root_mean_square)
        nn_ops(tape)->rms_norm_forward(tape_stream(tape), x->dtype, y->data, op->memory, x->data,
                                       residual, w, a.rows, a.D, a.eps);
    else
        nn_ops(tape)->layer_norm_forward(tape_stream(tape), x->dtype, y->data, op->memory, x->data,
                                         residual, w, nn_bias(op->module), a.rows, a.D, a.eps);
}

static void norm_recompute(struct tape *tape, const struct tape_op *op)
{
    norm_queue(tape, op, NULL);
}

/* x's gradient is added to the one it has, as a residual stream has from what comes later, else
 * written over the output's. */
static void norm_backward(struct tape *tape, struct tape_op *op)
{
    struct norm_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0], *y = op->output;
    struct param *const *params = op->module->params;
    const void *w = params[NN_WEIGHT]->value;
    bool add_dx = x->gradient != NULL, add;
    const void *dy = y->gradient;
    void *dx = add_dx ? tape_own_gradient(tape, x) : tape_steal_gradient(tape, y);
    if (!dx)
        return;
    float *dw = tape_param_gradient(params[NN_WEIGHT], &add);
    if (a.root_mean_square) {
        nn_ops(tape)->rms_norm_backward(tape_stream(tape), x->dtype, dx, add_dx, dw, dy, x->data, w,
                                        op->memory, a.rows, a.D, add);
    } else {
        float *dbias = tape_param_gradient(params[NN_BIAS], &add);
        nn_ops(tape)->layer_norm_backward(tape_stream(tape), x->dtype, dx, add_dx, dw, dbias, dy,
                                          x->data, w, op->memory, a.rows, a.D, add);
    }
    if (!add_dx)
        tape_accumulate_gradient(tape, x, dx);
}

static struct tensor *norm(struct tape *tape, struct module *m, struct tensor *x, float eps,
                           bool root_mean_square)
{
    int64_t D = m->params[NN_WEIGHT]->count;
    struct norm_args a = {x->count / D, D, eps, root_mean_square};
    struct tape_op op = {.backward = norm_backward,
                         .recompute = norm_recompute,
                         .module = m,
                         .inputs = {x},
                         .reads_inputs = true};
    op.output = tape_tensor(tape, x->dims, x->shape, m->path);
    op.memory =
        /* Of a row rstd, or mean and rstd: with them backward need not sum it again. */
        tape_alloc(tape, (size_t)(a.rows * (root_mean_square ? 1 : 2)) * sizeof(float), m->path);
    NN_SET_ARGS(op, a);
    if (op.memory)
        norm_queue(tape, &op, x->addend ? x->addend->data : NULL);
    tape_release_addend(tape, x);
    tape_record(tape, &op);
    return op.output;
}

static struct tensor *enter_norm(struct tape *tape, struct module *m, struct tensor *x, float eps,
                                 bool root_mean_square)
{
    struct tensor *output = NULL;
    tape_enter(tape, m);
    if (tape_failed(tape))
        tape_release(tape, x);
    else
        output = norm(tape, m, x, eps, root_mean_square);
    tape_leave(tape, m);
    return output;
}

static struct tensor *norm_of_sum(struct tape *tape, struct module *m, struct tensor *x,
                                  struct tensor *y, struct tensor **ret_sum, float eps,
                                  bool root_mean_square)
{
    y = nn_add_later(tape, x, y);
    if (ret_sum)
        *ret_sum = tape_retain(y);
    return enter_norm(tape, m, y, eps, root_mean_square);
}

struct tensor *nn_rms_norm(struct tape *tape, struct module *m, struct tensor *x, float eps)
{
    return enter_norm(tape, m, x, eps, true);
}

struct tensor *nn_layer_norm(struct tape *tape, struct module *m, struct tensor *x, float eps)
{
    return enter_norm(tape, m, x, eps, false);
}

struct tensor *nn_add_rms_norm(struct tape *tape, struct module *m, struct tensor *x,
                               struct tensor *y, struct tensor **ret_sum, float eps)
{
    return norm_of_sum(tape, m, x, y, ret_sum, eps, true);
}

struct tensor *nn_add_layer_norm(struct tape *tape, struct module *m, struct tensor *x,
                                 struct tensor *y, struct tensor **ret_sum, float eps)
{
    return norm_of_sum(tape, m, x, y, ret_sum, eps, false);
}
