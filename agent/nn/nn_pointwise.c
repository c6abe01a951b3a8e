#include "agent/nn/nn_pointwise.h"

#include "agent/nn/nn_internal.h"
#include "kernels/ops.h"

#include <assert.h>

/* ---- add ---- */

/* y's gradient is the sum's, where it is. */
static void add_backward(struct tape *tape, struct tape_op *op)
{
    tape_share_gradient(tape, op->inputs[0], op->output);
}

static struct tensor *add(struct tape *tape, struct tensor *x, struct tensor *y, bool later)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        tape_release(tape, y);
        return NULL;
    }
    assert(x->count == y->count && y->readers == 1 && !x->addend && !y->addend);
    if (later) {
        x->maker = 0; /* not dropped once the sum is made: a copy to the host may be under way */
        y->addend = tape_retain(x);
    } else {
        nn_ops(tape)->add(tape_stream(tape), y->dtype, y->data, x->dtype, x->data, y->count);
    }
    tape_record(tape, &(struct tape_op){.backward = add_backward, .output = y, .inputs = {x}});
    return y;
}

struct tensor *nn_add(struct tape *tape, struct tensor *x, struct tensor *y)
{
    return add(tape, x, y, false);
}

struct tensor *nn_add_later(struct tape *tape, struct tensor *x, struct tensor *y)
{
    return add(tape, x, y, true);
}

/* ---- gated ---- */

struct gated_args {
    bool gelu; /* else silu */
};

static void gated_make(struct tape *tape, const struct tape_op *op)
{
    struct gated_args a;
    NN_GET_ARGS(op, a);
    const struct ops *ops = nn_ops(tape);
    const struct tensor *x = op->inputs[0], *y = op->output;
    int64_t I = y->shape[y->dims - 1];
    (a.gelu ? ops->geglu_forward : ops->swiglu_forward)(tape_stream(tape), x->dtype, y->data,
                                                        x->data, y->count / I, I);
}

static void gated_backward(struct tape *tape, struct tape_op *op)
{
    struct gated_args a;
    NN_GET_ARGS(op, a);
    const struct ops *ops = nn_ops(tape);
    struct tensor *x = op->inputs[0], *y = op->output;
    int64_t I = y->shape[y->dims - 1];
    void *dx = tape_gradient(tape, x);
    if (dx)
        (a.gelu ? ops->geglu_backward : ops->swiglu_backward)(
            tape_stream(tape), x->dtype, dx, y->gradient, x->data, y->count / I, I);
    tape_accumulate_gradient(tape, x, dx);
}

static struct tensor *gated(struct tape *tape, struct tensor *x, bool gelu, const char *what)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    struct gated_args a = {gelu};
    int64_t shape[MODULE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->dims - 1] /= 2;
    struct tape_op op = {.backward = gated_backward,
                         .recompute = gated_make,
                         .output = tape_tensor(tape, x->dims, shape, what),
                         .inputs = {x},
                         .reads_inputs = true};
    NN_SET_ARGS(op, a);
    if (op.output)
        gated_make(tape, &op);
    tape_record(tape, &op);
    return op.output;
}

struct tensor *nn_swiglu(struct tape *tape, struct tensor *x)
{
    return gated(tape, x, false, "swiglu");
}

struct tensor *nn_geglu(struct tape *tape, struct tensor *x)
{
    return gated(tape, x, true, "geglu");
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
    const void *dy = op->output->gradient;
    void *dx = tape_steal_gradient(tape, op->output);
    if (dx)
        nn_ops(tape)->gelu_backward(tape_stream(tape), x->dtype, dx, dy, x->data, x->count, a.tanh);
    tape_accumulate_gradient(tape, x, dx);
}

static struct tape_op gelu_op(struct tensor *x, struct tensor *y, bool tanh)
{
    struct gelu_args a = {tanh};
    struct tape_op op = {.backward = gelu_backward,
                         .recompute = gelu_make,
                         .output = y,
                         .inputs = {x},
                         .reads_inputs = true};
    NN_SET_ARGS(op, a);
    return op;
}

struct tensor *nn_gelu_made(struct tape *tape, struct tensor *x, struct tensor *y, bool tanh)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        tape_release(tape, y);
        return NULL;
    }
    const struct tape_op op = gelu_op(x, y, tanh);
    tape_record(tape, &op);
    return y;
}

struct tensor *nn_gelu(struct tape *tape, struct tensor *x, bool tanh)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    const struct tape_op op = gelu_op(x, tape_tensor(tape, x->dims, x->shape, "gelu"), tanh);
    if (op.output)
        gelu_make(tape, &op);
    tape_record(tape, &op);
    return op.output;
}

/* ---- tanh ---- */

static void tanh_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *y = op->output;
    const void *dy = y->gradient;
    void *dx = tape_steal_gradient(tape, y);
    if (dx)
        nn_ops(tape)->tanh_backward(tape_stream(tape), y->dtype, dx, dy, y->data, y->count);
    tape_accumulate_gradient(tape, op->inputs[0], dx);
}

struct tensor *nn_tanh(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    struct tensor *y = tape_tensor(tape, x->dims, x->shape, "tanh");
    if (y)
        nn_ops(tape)->tanh_forward(tape_stream(tape), x->dtype, y->data, x->data, x->count);
    tape_record(tape,
                &(struct tape_op){
                    .backward = tanh_backward, .output = y, .inputs = {x}, .reads_output = true});
    return y;
}

/* ---- scale ---- */

struct scale_args {
    float a;
};

static void scale_backward(struct tape *tape, struct tape_op *op)
{
    struct scale_args args;
    NN_GET_ARGS(op, args);
    struct tensor *x = op->output;
    void *dx = tape_own_gradient(tape, x);
    if (dx)
        nn_ops(tape)->scale(tape_stream(tape), x->dtype, dx, args.a, x->count);
}

struct tensor *nn_scale(struct tape *tape, struct tensor *x, float a)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    assert(x->readers == 1);
    struct scale_args args = {a};
    struct tape_op op = {.backward = scale_backward, .output = x};
    nn_ops(tape)->scale(tape_stream(tape), x->dtype, x->data, a, x->count);
    NN_SET_ARGS(op, args);
    tape_record(tape, &op);
    return x;
}

/* ---- first token ---- */

/* One gradient of D numbers for every T: the others' are 0. */
static void first_token_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0], *y = op->output;
    struct stream *s = tape_stream(tape);
    int64_t B = y->shape[0], D = y->shape[1], row = x->shape[1] * D;
    size_t size = dtype_bytes(x->dtype);
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (dx && !add) /* zeros of either dtype */
        nn_ops(tape)->fill(s, dx, 0, x->count * (int64_t)size / (int64_t)sizeof(float));
    for (int64_t b = 0; dx && b < B; b++) {
        void *to = nn_at(dx, x->dtype, b * row), *from = nn_at(y->gradient, x->dtype, b * D);
        if (add)
            nn_ops(tape)->add(s, x->dtype, to, x->dtype, from, D);
        else
            stream_copy(s, to, from, (size_t)D * size);
    }
}

struct tensor *nn_first_token(struct tape *tape, struct tensor *x)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    int64_t B = x->shape[0], D = x->shape[2], row = x->shape[1] * D;
    /* Backward fills with zeros of fp32: of bf16 that takes an even count. */
    assert(x->dims == 3 && D % 2 == 0);
    struct tensor *y = tape_tensor(tape, 2, (int64_t[]){B, D}, "first tokens");
    for (int64_t b = 0; y && b < B; b++)
        stream_copy(tape_stream(tape), nn_at(y->data, x->dtype, b * D),
                    nn_at(x->data, x->dtype, b * row), (size_t)D * dtype_bytes(x->dtype));
    tape_record(tape,
                &(struct tape_op){.backward = first_token_backward, .output = y, .inputs = {x}});
    return y;
}
