#include "agent/nn/tape_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

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
    tape_offload_close(tape);
    free(tape->entries);
    free(tape);
}

void tape_begin(struct tape *tape, const struct tape_pass *pass)
{
    assert(tape->count == 0);
    tape->pass = *pass;
    tape->recording = pass->training;
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

enum tape_checkpointing tape_checkpointing(const struct tape *tape)
{
    return tape->checkpointing;
}

bool tape_is_recording(const struct tape *tape)
{
    return tape->recording;
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

/* ---- recording ---- */

void tape_append(struct tape *tape, const struct entry *entry)
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

/* Names what is queued from here on, if the module is a unit. */
static void begin_range(struct tape *tape, const char *what, const struct module *m)
{
    if (m->unit >= 0)
        stream_range_begin(tape->stream,
                           &(struct stream_range){.what = what, .of = module_label(m)});
}

static void end_range(struct tape *tape, const struct module *m)
{
    if (m->unit >= 0)
        stream_range_end(tape->stream);
}

void tape_enter(struct tape *tape, struct module *m)
{
    /* A segment that is computed again runs within backward: its units are gathered as for
     * backward, and stay for it. */
    border(tape, tape->recomputing ? tape->hooks.before_backward : tape->hooks.before_forward, m);
    begin_range(tape, tape->recomputing ? "recompute" : "forward", m);
    if (tape->recording && !tape->failed)
        tape_append(tape, &(struct entry){.kind = ENTRY_ENTER, .op = {.module = m}});
}

void tape_leave(struct tape *tape, struct module *m)
{
    end_range(tape, m);
    if (!tape->recomputing)
        border(tape, tape->hooks.after_forward, m);
    if (tape->recording && !tape->failed)
        tape_append(tape,
                    &(struct entry){.kind = tape->recomputing ? ENTRY_BEGIN_BACKWARD : ENTRY_LEAVE,
                                    .op = {.module = m}});
}

/* The model's use of an input becomes the entry's; its reader stays only if backward reads. What
 * could not be made again where it is read is kept. */
static void consume(struct tape *tape, const struct tape_op *op, struct tensor *input)
{
    if (op->reads_inputs && input->maker &&
        !tape_can_recompute(&tape->entries[input->maker - 1].op))
        input->maker = 0;
    if (op->reads_inputs)
        input->recorded++;
    if (!op->reads_inputs) {
        tape_release_reader(tape, input);
    } else if (input->maker && input->readers == input->recorded) {
        device_free(tape->device, input->data);
        input->data = NULL;
    }
}

void tape_record(struct tape *tape, const struct tape_op *op)
{
    if (!tape->recording || tape->failed) {
        for (int i = 0; i < TAPE_MAX_INPUTS; i++)
            tape_release(tape, op->inputs[i]);
        device_free(tape->device, op->memory);
        return;
    }
    assert(!op->recompute || (op->reads_inputs && op->output));
    /* no value that waits for its addend was read */
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        assert(!op->inputs[i] || !op->inputs[i]->addend);
    tape_append(tape, &(struct entry){.kind = ENTRY_OP, .op = *op});
    if (op->output) {
        op->output->references++;
        op->output->readers += op->reads_output;
        op->output->recorded += op->reads_output;
        op->output->maker =
            tape->checkpointing == TAPE_CHECKPOINTING_SELECTIVE && op->recompute ? tape->count : 0;
    }
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        if (op->inputs[i])
            consume(tape, op, op->inputs[i]);
}

static void release_reader(struct tape *tape, struct tensor *t)
{
    t->recorded--;
    tape_release_reader(tape, t);
}

static void release(struct tape *tape, struct tape_op *op)
{
    for (int i = 0; i < TAPE_MAX_INPUTS; i++) {
        if (op->inputs[i] && op->reads_inputs)
            release_reader(tape, op->inputs[i]);
        if (op->inputs[i])
            tape_release_reference(tape, op->inputs[i]);
    }
    if (op->output && op->reads_output)
        release_reader(tape, op->output);
    if (op->output)
        tape_release_reference(tape, op->output);
    device_free(tape->device, op->memory);
}

/* ---- backward ---- */

static void run_op(struct tape *tape, struct tape_op *op)
{
    /* An op whose output nobody's loss depends on has no gradient, and neither do its inputs by
     * it. */
    if (!op->output || op->output->gradient) {
        tape_recompute(tape, op);
        if (!tape->failed)
            op->backward(tape, op);
    }
    release(tape, op);
}

/* Frees what the entries from `base` on hold. */
static void unwind(struct tape *tape, int base)
{
    tape_offload_end(tape);
    while (tape->count > base)
        if (tape->entries[--tape->count].kind == ENTRY_OP)
            release(tape, &tape->entries[tape->count].op);
}

void tape_run_backward(struct tape *tape, int base)
{
    while (tape->count > base && !tape->failed) {
        struct entry entry = tape->entries[tape->count - 1]; /* an op may append */
        switch (entry.kind) {
        case ENTRY_LEAVE:
            border(tape, tape->hooks.before_backward, entry.op.module);
            /* fall through */
        case ENTRY_BEGIN_BACKWARD:
            begin_range(tape, "backward", entry.op.module);
            break;
        case ENTRY_ENTER:
            end_range(tape, entry.op.module);
            border(tape, tape->hooks.after_backward, entry.op.module);
            break;
        case ENTRY_BLOCK:
            tape_offload_prefetch(tape, entry.block);
            break;
        case ENTRY_OP:
            run_op(tape, &entry.op);
            break;
        }
        tape->count--;
    }
    if (tape->failed)
        unwind(tape, base);
}

/* Ends the pass: its first failure, if it had one. */
static int end(struct tape *tape, struct error *err)
{
    tape->block_count = 0;
    if (!tape->failed)
        return 0;
    *err = tape->failure;
    return -1;
}

int tape_backward(struct tape *tape, struct error *err)
{
    assert(tape->pass.training);
    tape->recording = false;
    tape_offload_begin_backward(tape);
    tape_run_backward(tape, 0);
    return end(tape, err);
}

int tape_finish(struct tape *tape, struct error *err)
{
    unwind(tape, 0);
    return end(tape, err);
}
