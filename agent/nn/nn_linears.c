/* Several products of one tensor, side by side: one product where the weights lie behind each
 * other. */
#include "agent/nn/nn_fp8.h"
#include "agent/nn/nn_internal.h"
#include "agent/nn/nn_linear.h"

#include <assert.h>
#include <string.h>

struct packed_args {
    int count;
    struct module *modules[NN_MOST_LINEARS];
};

void nn_linears_join(struct module *const *modules, int count)
{
    for (int i = 0; i < count; i++) {
        modules[i]->params[NN_WEIGHT]->beside_count = count;
        modules[i]->params[NN_WEIGHT]->beside_place = i;
    }
}

static int64_t width_of(const struct module *m)
{
    return m->params[NN_WEIGHT]->shape[0];
}

static struct linear_shape packed_shape(const struct packed_args *a, const struct tensor *x)
{
    int64_t out = 0, in = a->modules[0]->params[NN_WEIGHT]->shape[1];
    for (int i = 0; i < a->count; i++)
        out += width_of(a->modules[i]);
    return linear_dense(x->count / in, in, out);
}

/* Where a weight ends in memory. t: of the model. */
static const void *end_of(const struct param *p, enum dtype t)
{
    return (const char *)p->value + p->count * (int64_t)dtype_bytes(p->scale ? DTYPE_E4M3 : t);
}

/* Whether the weights lie behind each other, as in a unit's memory, and are no units themselves: on
 * a GPU they are one matrix then. The CPU multiplies one after the other, and keeps its bits. What
 * is gathered in fp8 has one scale if its gather saw it so, too. */
static bool is_one_matrix(struct tape *tape, const struct packed_args *a, enum dtype t)
{
    if (device_is_host(stream_device(tape_stream(tape))))
        return false;
    for (int i = 0; i < a->count; i++) {
        const struct module *m = a->modules[i];
        const struct param *p = m->params[NN_WEIGHT],
                           *before = i > 0 ? a->modules[i - 1]->params[NN_WEIGHT] : p;
        assert(!p->scale || (p->beside_count == a->count && p->beside_place == i));
        if (m->unit >= 0 || nn_bias(m) || p->fp8 != before->fp8 || p->scale != before->scale)
            return false;
        if (i > 0 && p->value != end_of(before, t))
            return false;
    }
    return true;
}

/* The gradients lie as the weights do, or else each is made on its own. */
static void packed_backward_weights(struct tape *tape, const struct packed_args *a,
                                    const struct tensor *x, const struct tensor *y)
{
    float *dw[NN_MOST_LINEARS];
    bool adds[NN_MOST_LINEARS], is_one = true;
    for (int i = 0; i < a->count; i++) {
        dw[i] = tape_param_gradient(a->modules[i]->params[NN_WEIGHT], &adds[i]);
        is_one = is_one && adds[i] == adds[0] &&
                 (i == 0 || dw[i] == dw[i - 1] + a->modules[i - 1]->params[NN_WEIGHT]->count);
    }
    struct linear_shape shape = packed_shape(a, x);
    int64_t column = 0;
    for (int i = 0; i < (is_one ? 1 : a->count); i++) {
        shape.out = is_one ? shape.out : width_of(a->modules[i]);
        nn_ops(tape)->linear_backward_weights(tape_stream(tape), x->dtype, dw[i], NULL, x->data,
                                              nn_at(y->gradient, y->dtype, column), &shape,
                                              adds[i]);
        column += shape.out;
    }
}

/* Weights whose gradients lie as they do are one part. */
static void packed_fp8_backward(struct tape *tape, const struct tape_op *op,
                                const struct packed_args *a, const struct linear_shape *shape)
{
    struct nn_fp8_part parts[NN_MOST_LINEARS];
    int count = 0;
    for (int i = 0; i < a->count; i++) {
        struct nn_fp8_part part = {.out = width_of(a->modules[i])};
        part.dw = tape_param_gradient(a->modules[i]->params[NN_WEIGHT], &part.add);
        struct nn_fp8_part *before = count > 0 ? &parts[count - 1] : NULL;
        if (before && before->add == part.add && part.dw == before->dw + before->out * shape->in)
            before->out += part.out;
        else
            parts[count++] = part;
    }
    nn_fp8_backward(tape, op->inputs[0], a->modules[0]->params[NN_WEIGHT], op->output->gradient,
                    op->memory, shape, parts, count);
}

static void packed_backward(struct tape *tape, struct tape_op *op)
{
    struct packed_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0], *y = op->output;
    const struct linear_shape shape = packed_shape(&a, x);
    if (op->memory) {
        packed_fp8_backward(tape, op, &a, &shape);
        return;
    }
    packed_backward_weights(tape, &a, x, y);
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (dx)
        nn_ops(tape)->linear_backward_data(tape_stream(tape), x->dtype, dx, y->gradient,
                                           a.modules[0]->params[NN_WEIGHT]->value, &shape, add);
}

static void apply_packed(struct tape *tape, const struct packed_args *a, struct tensor *x,
                         struct tensor *y)
{
    const struct linear_shape shape = packed_shape(a, x);
    void *memory = y ? nn_multiply(tape, a->modules[0], x, y->data, y->dtype, false, &shape) : NULL;
    struct tape_op op = {.backward = packed_backward,
                         .module = a->modules[0],
                         .output = y,
                         .inputs = {x},
                         .reads_inputs = true,
                         .memory = memory};
    NN_SET_ARGS(op, *a);
    tape_record(tape, &op);
}

struct tensor *nn_linears(struct tape *tape, struct module *const *modules, int count,
                          struct tensor *x, const char *what)
{
    struct packed_args a = {.count = count};
    assert(count >= 1 && count <= NN_MOST_LINEARS);
    memcpy(a.modules, modules, (size_t)count * sizeof *modules);
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    struct tensor *y = nn_new_columns(tape, x, packed_shape(&a, x).out, what);
    if (is_one_matrix(tape, &a, x->dtype)) {
        apply_packed(tape, &a, x, y);
        return y;
    }
    int64_t column = 0;
    for (int i = 0; i < count; i++) {
        tape_enter(tape, modules[i]);
        if (tape_failed(tape)) {
            tape_release(tape, x);
            tape_release(tape, y);
            return NULL;
        }
        nn_linear_into(tape, modules[i], i + 1 < count ? tape_retain(x) : x, y, column);
        tape_leave(tape, modules[i]);
        column += width_of(modules[i]);
    }
    return y;
}
