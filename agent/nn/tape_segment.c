/* Values that are made again in backward: a whole segment, or the output of one cheap op. */
#include "agent/nn/tape_internal.h"

#include <assert.h>
#include <string.h>

/* ---- segments ---- */

struct segment {
    tape_run *run;
    char args[TAPE_SEGMENT_ARGS_BYTES];
};
_Static_assert(sizeof(struct segment) <= sizeof((struct tape_op *)0)->args, "a segment is an op");

/* The segment as one op whose backward records it and runs the record backwards. */
static void rerun_forward(struct tape *tape, struct tape_op *op)
{
    struct segment segment;
    memcpy(&segment, op->args, sizeof segment);
    int base = tape->count;
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        tape_retain(op->inputs[i]);
    tape->recording = tape->recomputing = true;
    struct tensor *y = segment.run(tape, segment.args, op->inputs);
    tape->recording = tape->recomputing = false;
    if (y) {
        tape_move_gradient(y, op->output);
        tape_release(tape, y);
    }
    tape_run_backward(tape, base);
}

static struct tensor *run_unrecorded(struct tape *tape, const struct segment *segment,
                                     struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    struct tape_op op = {.backward = rerun_forward, .reads_inputs = true};
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        op.inputs[i] = tape_retain(inputs[i]);
    tape->recording = false;
    struct tensor *y = op.output = segment->run(tape, segment->args, inputs);
    tape->recording = true;
    memcpy(op.args, segment, sizeof *segment);
    tape_record(tape, &op);
    return y;
}

struct tensor *tape_segment(struct tape *tape, tape_run *run, const void *args, size_t bytes,
                            struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    struct segment segment = {.run = run};
    assert(bytes <= sizeof segment.args);
    memcpy(segment.args, args, bytes);
    if (tape->failed || !tape->recording || tape->recomputing)
        return run(tape, segment.args, inputs);
    int first = tape->count;
    struct tensor *y = tape->checkpointing == TAPE_CHECKPOINTING_FULL
                           ? run_unrecorded(tape, &segment, inputs)
                           : run(tape, segment.args, inputs);
    if (!tape->host)
        return y;
    if (y) /* others need it when what it is made of is still away */
        y->maker = 0;
    tape_offload(tape, first, y);
    return y;
}

/* ---- ops ---- */

bool tape_can_recompute(const struct tape_op *op)
{
    const struct module *m = op->module;
    return !m || m->param_count == 0 || m->params[0]->value;
}

static void recompute(struct tape *tape, struct tensor *t)
{
    if (!t || t->data || t->maker == 0 || tape->failed)
        return;
    const struct tape_op *op = &tape->entries[t->maker - 1].op;
    for (int i = 0; i < TAPE_MAX_INPUTS; i++)
        recompute(tape, op->inputs[i]);
    t->maker = 0; /* stays until its last reader is done */
    t->data = tape_alloc_like(tape, t, t->what);
    if (t->data)
        op->recompute(tape, op);
}

void tape_recompute(struct tape *tape, const struct tape_op *op)
{
    for (int i = 0; i < TAPE_MAX_INPUTS && op->reads_inputs; i++)
        recompute(tape, op->inputs[i]);
    if (op->reads_output)
        recompute(tape, op->output);
}
