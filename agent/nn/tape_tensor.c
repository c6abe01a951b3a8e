/* Activations and their gradients. */
#include "agent/nn/tape_internal.h"

#include "base/mem.h"
#include "kernels/ops.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

void *tape_alloc(struct tape *tape, size_t bytes, const char *what)
{
    struct error err;
    void *memory = NULL;
    if (!tape->failed &&
        device_alloc(tape->device, MEMORY_ACTIVATION, bytes, what, &memory, &err) < 0)
        tape_fail(tape, &err);
    return tape->failed ? NULL : memory;
}

const void *tape_constant(struct tape *tape, const void *host, size_t bytes, const char *what)
{
    struct error err;
    /* Found by the address of the host's table: a model has few, and they live as long as it
     * does. */
    struct constant *c = tape->constants;
    for (; c < tape->constants + tape->constant_count; c++)
        if (c->host == host)
            return tape->failed ? NULL : c->memory;
    assert(tape->constant_count < TAPE_MAX_CONSTANTS);
    if (tape->failed)
        return NULL;
    if (device_alloc(tape->device, MEMORY_INPUT, bytes, what, &c->memory, &err) < 0) {
        tape_fail(tape, &err);
        return NULL;
    }
    c->host = host;
    tape->constant_count++;
    stream_copy(tape->stream, c->memory, host, bytes);
    return c->memory;
}

void *tape_alloc_like(struct tape *tape, const struct tensor *t, const char *what)
{
    return tape_alloc(tape, (size_t)t->count * dtype_bytes(t->dtype), what);
}

/* Two counts, as a tensor lives longer than its value: readers keep the data, references the struct
 * with its gradient. */
static struct tensor *new_tensor(enum dtype dtype, int dims, const int64_t *shape, const char *what)
{
    assert(dims > 0 && dims <= MODULE_MAX_DIMS);
    struct tensor *t = xcalloc(1, sizeof *t);
    t->what = what;
    t->dtype = dtype;
    t->dims = dims;
    t->count = 1;
    for (int d = 0; d < dims; d++) {
        t->shape[d] = shape[d];
        t->count *= shape[d];
    }
    t->readers = t->references = 1;
    return t;
}

struct tensor *tape_input(struct tape *tape, void *data, int dims, const int64_t *shape)
{
    if (tape->failed)
        return NULL;
    struct tensor *t = new_tensor(tape->dtype, dims, shape, "input");
    t->data = data;
    t->is_input = true;
    return t;
}

struct tensor *tape_tensor(struct tape *tape, int dims, const int64_t *shape, const char *what)
{
    struct tensor *t = new_tensor(tape->dtype, dims, shape, what);
    t->data = tape_alloc_like(tape, t, what);
    if (t->data)
        return t;
    free(t);
    return NULL;
}

/* Leaves a shared gradient's memory to the other tensor; false if t has it alone. */
static bool part(struct tensor *t)
{
    if (!t->shares)
        return false;
    t->shares->shares = NULL;
    t->shares = NULL;
    return true;
}

void tape_release_reference(struct tape *tape, struct tensor *t)
{
    assert(t->references > 0);
    if (--t->references > 0)
        return;
    if (!part(t))
        device_free(tape->device, t->gradient);
    free(t);
}

void tape_release_reader(struct tape *tape, struct tensor *t)
{
    assert(t->readers > 0);
    t->readers--;
    if (t->readers > 0 && (t->maker == 0 || t->readers > t->recorded))
        return;
    if (!t->is_input)
        device_free(tape->device, t->data);
    t->data = NULL;
    if (t->readers > 0)
        return;
    if (t->host) {
        device_free(tape->host, t->host);
        t->host = NULL;
    }
    tape_release_addend(tape, t);
}

void tape_release_addend(struct tape *tape, struct tensor *t)
{
    struct tensor *addend = t->addend;
    t->addend = NULL;
    tape_release(tape, addend);
}

struct tensor *tape_retain(struct tensor *t)
{
    if (t) {
        t->readers++;
        t->references++;
    }
    return t;
}

void tape_release(struct tape *tape, struct tensor *t)
{
    if (!t)
        return;
    tape_release_reader(tape, t);
    tape_release_reference(tape, t);
}

/* ---- gradients ---- */

void *tape_gradient(struct tape *tape, struct tensor *t)
{
    char what[96];
    snprintf(what, sizeof what, "gradient of %s", t->what);
    return t->is_input ? NULL : tape_alloc_like(tape, t, what);
}

void *tape_gradient_in_place(struct tape *tape, struct tensor *t, bool *ret_accumulate)
{
    *ret_accumulate = t->gradient != NULL;
    if (*ret_accumulate)
        return tape_own_gradient(tape, t);
    return t->gradient = tape_gradient(tape, t);
}

void tape_accumulate_gradient(struct tape *tape, struct tensor *t, void *gradient)
{
    /* The first gradient becomes the tensor's, without a copy; others are added to it. */
    if (!t->gradient && !t->is_input) {
        t->gradient = gradient;
        return;
    }
    if (gradient && !t->is_input && tape_own_gradient(tape, t))
        device_ops(tape->device)
            ->add(tape->stream, t->dtype, t->gradient, t->dtype, gradient, t->count);
    device_free(tape->device, gradient);
}

void *tape_steal_gradient(struct tape *tape, struct tensor *t)
{
    if (t->shares)
        return tape_gradient(tape, t);
    void *gradient = t->gradient;
    t->gradient = NULL;
    return gradient;
}

/* By an op, here and below: a graph can hold it. */
static void copy_gradient(struct tape *tape, void *to, const struct tensor *t)
{
    device_ops(tape->device)->cast(tape->stream, t->dtype, to, t->dtype, t->gradient, t->count);
}

void *tape_own_gradient(struct tape *tape, struct tensor *t)
{
    if (!t->shares)
        return t->gradient;
    void *own = tape_gradient(tape, t);
    if (!own)
        return NULL;
    copy_gradient(tape, own, t);
    part(t);
    return t->gradient = own;
}

void tape_share_gradient(struct tape *tape, struct tensor *x, struct tensor *y)
{
    if (!x->is_input && !x->gradient && !y->shares) {
        x->gradient = y->gradient;
        x->shares = y;
        y->shares = x;
        return;
    }
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (dx && add)
        device_ops(tape->device)->add(tape->stream, x->dtype, dx, x->dtype, y->gradient, x->count);
    else if (dx)
        copy_gradient(tape, dx, y);
}

void tape_move_gradient(struct tensor *to, struct tensor *from)
{
    to->gradient = from->gradient;
    to->shares = from->shares;
    if (to->shares)
        to->shares->shares = to;
    from->gradient = NULL;
    from->shares = NULL;
}

float *tape_param_gradient(struct param *p, bool *ret_accumulate)
{
    assert(p->gradient);
    *ret_accumulate = p->gradient_written;
    p->gradient_written = true;
    return p->gradient;
}
