#include "agent/nn_pointwise.h"

#include "agent/nn_parts.h"

#include <assert.h>

/* ---- add ---- */

/* y's gradient is the sum's, where it is; x gets a copy. */
static void add_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0], *y = op->output;
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (dx && add)
        nn_ops(tape)->add(tape_stream(tape), x->dtype, dx, y->gradient, x->count);
    else if (dx)
        stream_copy(tape_stream(tape), dx, y->gradient, (size_t)x->count * dtype_bytes(x->dtype));
}

struct tensor *nn_add(struct tape *tape, struct tensor *x, struct tensor *y)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        tape_drop(tape, y);
        return NULL;
    }
    assert(x->count == y->count && y->readers == 1);
    nn_ops(tape)->add(tape_stream(tape), y->dtype, y->data, x->data, y->count);
    tape_record(tape, &(struct tape_op){.backward = add_backward, .output = y, .inputs = {x}});
    return y;
}

/* ---- swiglu ---- */

static void swiglu_make(struct tape *tape, const struct tape_op *op)
{
    const struct tensor *x = op->inputs[0], *y = op->output;
    int64_t I = y->shape[y->dims - 1];
    nn_ops(tape)->swiglu_forward(tape_stream(tape), x->dtype, y->data, x->data, y->count / I, I);
}

static void swiglu_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0], *y = op->output;
    int64_t I = y->shape[y->dims - 1];
    void *dx = tape_gradient(tape, x);
    if (dx)
        nn_ops(tape)->swiglu_backward(tape_stream(tape), x->dtype, dx, y->gradient, x->data,
                                      y->count / I, I);
    tape_give_gradient(tape, x, dx);
}

struct tensor *nn_swiglu(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    int64_t shape[MODULE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->dims - 1] /= 2;
    struct tape_op op = {.backward = swiglu_backward,
                         .remake = swiglu_make,
                         .output = tape_tensor(tape, x->dims, shape, "swiglu"),
                         .inputs = {x},
                         .reads_inputs = true};
    if (op.output)
        swiglu_make(tape, &op);
    tape_record(tape, &op);
    return op.output;
}

/* ---- gelu ---- */

struct gelu_args {
    bool tanh;
};

static void gelu_make(struct tape *tape, const struct tape_op *op)
{
    struct gelu_args a;
    NN_GET_ARGS(op, a);
    const struct tensor *x = op->inputs[0];
    nn_ops(tape)->gelu_forward(tape_stream(tape), x->dtype, op->output->data, x->data, x->count,
                               a.tanh);
}

static void gelu_backward(struct tape *tape, struct tape_op *op)
{
    struct gelu_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0];
    void *gradient = tape_take_gradient(op->output);
    nn_ops(tape)->gelu_backward(tape_stream(tape), x->dtype, gradient, gradient, x->data, x->count,
                                a.tanh);
    tape_give_gradient(tape, x, gradient);
}

struct tensor *nn_gelu(struct tape *tape, struct tensor *x, bool tanh)
{
    if (tape_failed(tape)) {
        tape_drop(tape, x);
        return NULL;
    }
    struct gelu_args a = {tanh};
    struct tape_op op = {.backward = gelu_backward,
                         .remake = gelu_make,
                         .output = tape_tensor(tape, x->dims, x->shape, "gelu"),
                         .inputs = {x},
                         .reads_inputs = true};
    NN_SET_ARGS(op, a);
    if (op.output)
        gelu_make(tape, &op);
    tape_record(tape, &op);
    return op.output;
}
