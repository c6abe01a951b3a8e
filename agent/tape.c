#include "agent/tape.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    enum { ENTRY_OP, ENTRY_ENTER, ENTRY_LEAVE } kind;
    struct tape_op op; /* of ENTER and LEAVE only the module */
};

struct tape {
    struct stream *stream;
    struct device *device;
    enum dtype dtype;
    struct tape_hooks hooks;
    struct tape_pass pass;
    struct entry *entries; /* in the order of the forward pass; empty between passes */
    int count, size;
    bool failed;
    struct error failure;
    struct constant {
        const void *host;
        void *memory;
    } constants[TAPE_MAX_CONSTANTS];
    int constant_count;
};

static int no_hook(void *ctx, struct module *m, struct error *err)
{
    (void)ctx, (void)m, (void)err;
    return 0;
}

int tape_open(struct stream *stream, enum dtype dtype, const struct tape_hooks *hooks,
              struct tape **ret_tape, struct error *err)
{
    (void)err;
    struct tape *tape = xcalloc(1, sizeof *tape);
    tape->stream = stream;
    tape->device = stream_device(stream);
    tape->dtype = dtype;
    tape->hooks = hooks ? *hooks : (struct tape_hooks){NULL, no_hook, no_hook, no_hook, no_hook};
    *ret_tape = tape;
    return 0;
}

void tape_close(struct tape *tape)
{
    if (!tape)
        return;
    assert(tape->count == 0);
    for (int i = 0; i < tape->constant_count; i++)
        device_free(tape->device, tape->constants[i].memory);
    free(tape->entries);
    free(tape);
}

void tape_begin(struct tape *tape, const struct tape_pass *pass)
{
    assert(tape->count == 0);
    tape->pass = *pass;
    tape->failed = false;
}

const struct tape_pass *tape_current(const struct tape *tape)
{
    return &tape->pass;
}

struct stream *tape_stream(const struct tape *tape)
{
    return tape->stream;
}

enum dtype tape_dtype(const struct tape *tape)
{
    return tape->dtype;
}

bool tape_failed(const struct tape *tape)
{
    return tape->failed;
}

void tape_fail(struct tape *tape, const struct error *err)
{
    if (tape->failed)
        return;
    tape->failed = true;
    tape->failure = *err;
}

/* ---- tensors ---- */

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

static void *alloc_like(struct tape *tape, const struct tensor *t, const char *what)
{
    return tape_alloc(tape, (size_t)t->count * dtype_bytes(t->dtype), what);
}

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
    t->data = alloc_like(tape, t, what);
    if (t->data)
        return t;
    free(t);
    return NULL;
}

static void drop_reference(struct tape *tape, struct tensor *t)
{
    assert(t->references > 0);
    if (--t->references > 0)
        return;
    device_free(tape->device, t->gradient);
    free(t);
}

static void drop_reader(struct tape *tape, struct tensor *t)
{
    assert(t->readers > 0);
    if (--t->readers > 0)
        return;
    if (!t->is_input)
        device_free(tape->device, t->data);
    t->data = NULL;
}

struct tensor *tape_keep(struct tensor *t)
{
    if (t) {
        t->readers++;
        t->references++;
    }
    return t;
}

void tape_drop(struct tape *tape, struct tensor *t)
{
    if (!t)
        return;
    drop_reader(tape, t);
    drop_reference(tape, t);
}

/* ---- recording ---- */

static void append(struct tape *tape, const struct entry *entry)
{
    if (tape->count == tape->size) {
        tape->size = tape->size ? 2 * tape->size : 64;
        tape->entries = xrealloc(tape->entries, (size_t)tape->size * sizeof *tape->entries);
    }
    tape->entries[tape->count++] = *entry;
}

/* Calls a hook at a module's border; its failure is the tape's. */
static void border(struct tape *tape, int (*hook)(void *, struct module *, struct error *),
                   struct module *m)
{
    struct error err;
    if (!tape->failed && hook(tape->hooks.ctx, m, &err) < 0)
        tape_fail(tape, &err);
}

void tape_enter(struct tape *tape, struct module *m)
{
    border(tape, tape->hooks.before_forward, m);
    if (tape->pass.training && !tape->failed)
        append(tape, &(struct entry){ENTRY_ENTER, {.module = m}});
}

void tape_leave(struct tape *tape, struct module *m)
{
    border(tape, tape->hooks.after_forward, m);
    if (tape->pass.training && !tape->failed)
        append(tape, &(struct entry){ENTRY_LEAVE, {.module = m}});
}

void tape_record(struct tape *tape, const struct tape_op *op)
{
    if (!tape->pass.training || tape->failed) {
        for (int i = 0; i < TAPE_MAX_INPUTS; i++)
            tape_drop(tape, op->inputs[i]);
        device_free(tape->device, op->memory);
        return;
    }
    /* the inputs' references become the entry's; the readers stay only if backward reads */
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        if (op->inputs[i] && !op->reads_inputs)
            drop_reader(tape, op->inputs[i]);
    if (op->output) {
        op->output->references++;
        op->output->readers += op->reads_output;
    }
    append(tape, &(struct entry){ENTRY_OP, *op});
}

static void release(struct tape *tape, struct tape_op *op)
{
    for (int i = 0; i < TAPE_MAX_INPUTS; i++) {
        if (op->inputs[i] && op->reads_inputs)
            drop_reader(tape, op->inputs[i]);
        if (op->inputs[i])
            drop_reference(tape, op->inputs[i]);
    }
    if (op->output && op->reads_output)
        drop_reader(tape, op->output);
    if (op->output)
        drop_reference(tape, op->output);
    device_free(tape->device, op->memory);
}

/* ---- backward ---- */

void *tape_gradient(struct tape *tape, struct tensor *t)
{
    char what[96];
    snprintf(what, sizeof what, "gradient of %s", t->what);
    return t->is_input ? NULL : alloc_like(tape, t, what);
}

void *tape_gradient_in_place(struct tape *tape, struct tensor *t, bool *ret_accumulate)
{
    *ret_accumulate = t->gradient != NULL;
    if (!t->gradient)
        t->gradient = tape_gradient(tape, t);
    return t->gradient;
}

void tape_give_gradient(struct tape *tape, struct tensor *t, void *gradient)
{
    if (!t->gradient && !t->is_input) {
        t->gradient = gradient;
        return;
    }
    if (gradient && !t->is_input)
        device_ops(tape->device)->add(tape->stream, t->dtype, t->gradient, gradient, t->count);
    device_free(tape->device, gradient);
}

void *tape_take_gradient(struct tensor *t)
{
    void *gradient = t->gradient;
    t->gradient = NULL;
    return gradient;
}

float *tape_param_gradient(struct param *p, bool *ret_accumulate)
{
    assert(p->gradient);
    *ret_accumulate = p->gradient_written;
    p->gradient_written = true;
    return p->gradient;
}

/* Ends the pass: its first failure, if it had one. */
static int end(struct tape *tape, struct error *err)
{
    for (int i = tape->count - 1; i >= 0; i--)
        if (tape->entries[i].kind == ENTRY_OP)
            release(tape, &tape->entries[i].op);
    tape->count = 0;
    if (!tape->failed)
        return 0;
    *err = tape->failure;
    return -1;
}

int tape_backward(struct tape *tape, struct error *err)
{
    assert(tape->pass.training);
    for (; tape->count > 0 && !tape->failed; tape->count--) {
        struct entry *entry = &tape->entries[tape->count - 1];
        struct tape_op *op = &entry->op;
        switch (entry->kind) {
        case ENTRY_LEAVE:
            border(tape, tape->hooks.before_backward, op->module);
            break;
        case ENTRY_ENTER:
            border(tape, tape->hooks.after_backward, op->module);
            break;
        case ENTRY_OP:
            if (!op->output || op->output->gradient)
                op->backward(tape, op);
            release(tape, op);
            break;
        }
    }
    return end(tape, err);
}

int tape_finish(struct tape *tape, struct error *err)
{
    return end(tape, err);
}
