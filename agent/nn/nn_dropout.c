#include "agent/nn/nn_dropout.h"

#include "agent/nn/nn_internal.h"
#include "kernels/random.h"

#include <assert.h>

struct module *nn_dropout_new(struct arena *arena, struct module *parent, const char *name, float p)
{
    assert(p >= 0 && p < 1);
    const char *text = arena_printf(arena, "Dropout(p=%g, inplace=False)", p);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Dropout", text));
    m->dropout = p;
    return m;
}

struct dropout_args {
    int64_t rows, cols;
    uint64_t key;
};

static void dropout_queue(struct tape *tape, float p, const struct dropout_args *a, void *y,
                          const void *x)
{
    const struct tape_pass *pass = tape_current(tape);
    nn_ops(tape)->dropout(tape_stream(tape), tape_dtype(tape), y, x, a->rows, a->cols, p, a->key,
                          pass->first_row, pass->row_stride);
}

static void dropout_backward(struct tape *tape, struct tape_op *op)
{
    struct dropout_args a;
    NN_GET_ARGS(op, a);
    /* The mask is not kept: the same key gives it again. */
    const void *dy = op->output->gradient;
    void *dx = tape_steal_gradient(tape, op->output);
    if (dx)
        dropout_queue(tape, op->module->dropout, &a, dx, dy);
    tape_accumulate_gradient(tape, op->inputs[0], dx);
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
    NN_SET_ARGS(op, a);
    tape_record(tape, &op);
    return y;
}
