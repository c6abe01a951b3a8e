/* Private to the tape: tape.c records ops and runs them backwards. tape_tensor.c holds activations
 * and their gradients. tape_segment.c recomputes values (activation checkpointing), and
 * tape_offload.c moves them to the host and back. */
#ifndef SHOAL_AGENT_NN_TAPE_INTERNAL_H
#define SHOAL_AGENT_NN_TAPE_INTERNAL_H

#include "agent/nn/tape.h"

struct entry {
    /* BEGIN_BACKWARD: a LEAVE in a segment that ran again, whose hooks are called already */
    enum { ENTRY_OP, ENTRY_ENTER, ENTRY_LEAVE, ENTRY_BEGIN_BACKWARD, ENTRY_BLOCK } kind;
    struct tape_op op; /* of ENTER, LEAVE and BEGIN_BACKWARD only the module */
    int block;         /* of BLOCK: backward needs its values from here on */
};

/* Values that are offloaded together: those that the ops of one segment read in backward. */
struct block {
    struct tensor **moved;
    int count, size;
    struct event *copied; /* on the copy stream: out, or back */
    /* COPYING_OUT: valid on the device, too; COPYING_BACK: not yet valid on the device */
    enum { BLOCK_ON_DEVICE, BLOCK_COPYING_OUT, BLOCK_ON_HOST, BLOCK_COPYING_BACK } state;
};

struct tape {
    struct stream *stream;
    struct device *device;
    enum dtype dtype;
    struct tape_hooks hooks;
    struct tape_pass pass;
    bool recording;        /* what is queued will be run backwards */
    bool recomputing;      /* a segment runs again: the pass is in backward */
    struct entry *entries; /* in the order of the forward pass; empty between passes */
    int count, size;
    bool failed;
    struct error failure;
    struct constant {
        const void *host;
        void *memory;
    } constants[TAPE_MAX_CONSTANTS];
    int constant_count;

    enum tape_checkpointing checkpointing;
    struct device *host; /* NULL: nothing is moved */
    int horizon;
    struct stream *copies;
    struct event *reached; /* a point of compute's, recorded and waited for at once */
    struct block *blocks;  /* of this pass */
    int block_count, block_size, block_opened; /* events live on between passes */
};

/* ---- tape.c ---- */

void tape_append(struct tape *tape, const struct entry *entry);
/* Runs the entries from `base` on backwards and removes them. */
void tape_run_backward(struct tape *tape, int base);

/* ---- tape_tensor.c ---- */

/* One reader of the value less. The value is freed at 0, and also when all readers left are ops
 * that can recompute it. */
void tape_release_reader(struct tape *tape, struct tensor *t);
void tape_release_reference(struct tape *tape, struct tensor *t);
/* from's gradient becomes to's, which has none. */
void tape_move_gradient(struct tensor *to, struct tensor *from);
/* Memory for t's value or gradient; NULL if the tape has failed. */
void *tape_alloc_like(struct tape *tape, const struct tensor *t, const char *what);

/* ---- tape_segment.c ---- */

/* Whether the op could run forward now: its parameters are gathered. */
bool tape_can_recompute(const struct tape_op *op);
/* Recomputes the dropped values that the op's backward reads. */
void tape_recompute(struct tape *tape, const struct tape_op *op);

/* ---- tape_offload.c ---- */

/* Offloads the values that the entries from `first` on keep, as the next block. y: what its segment
 * gave, or NULL; its sum is made before the next block is queued. */
void tape_offload(struct tape *tape, int first, const struct tensor *y);
/* Called when backward begins: values still being offloaded stay on the device. */
void tape_offload_begin_backward(struct tape *tape);
/* In backward: work that is queued from now on may read the block's values. */
void tape_offload_prefetch(struct tape *tape, int block);
/* Called at the end of a pass, before memory is freed: waits for all copies. */
void tape_offload_end(struct tape *tape);
void tape_offload_close(struct tape *tape);
#endif
