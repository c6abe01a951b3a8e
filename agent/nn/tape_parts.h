/* What the parts of the tape share, and nobody else: tape.c records and runs backwards,
 * tape_tensor.c holds activations and their gradients, tape_segment.c makes values again,
 * tape_offload.c moves them to the host and back. */
#ifndef SHOAL_AGENT_TAPE_PARTS_H
#define SHOAL_AGENT_TAPE_PARTS_H

#include "agent/nn/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

struct entry {
    /* TURN: a LEAVE of what ran again, whose hooks have been called */
    enum { ENTRY_OP, ENTRY_ENTER, ENTRY_LEAVE, ENTRY_BEGIN_BACKWARD, ENTRY_BLOCK } kind;
    struct tape_op op; /* of ENTER, LEAVE and TURN only the module */
    int block;         /* of BLOCK: what lies before it in the pass is needed from here backwards */
};

/* Values that left the device together: those that the ops of one segment read in backward. */
struct block {
    struct tensor **moved;
    int count, size;
    struct event *copied; /* on the copy stream, the way out or the way back */
    /* LEAVING: on the device, too; COMING: the device's memory is not written yet */
    enum { BLOCK_HERE, BLOCK_LEAVING, BLOCK_AWAY, BLOCK_COMING } state;
};

struct tape {
    struct stream *stream;
    struct device *device;
    enum dtype dtype;
    struct tape_hooks hooks;
    struct tape_pass pass;
    bool recording;        /* what is queued will be run backwards */
    bool again;            /* a segment runs again: the pass is in backward */
    struct entry *entries; /* in the order of the forward pass; empty between passes */
    int count, size;
    bool failed;
    struct error failure;
    struct constant {
        const void *host;
        void *memory;
    } constants[TAPE_MAX_CONSTANTS];
    int constant_count;

    enum tape_keeps keeps;
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

/* One reader of the value less: at 0 the value is freed, and when only ops are left that can have
 * it made again, too. */
void tape_drop_reader(struct tape *tape, struct tensor *t);
void tape_drop_reference(struct tape *tape, struct tensor *t);
/* Memory for t's value or gradient; NULL if the tape has failed. */
void *tape_alloc_like(struct tape *tape, const struct tensor *t, const char *what);

/* ---- tape_segment.c ---- */

/* Whether the op could run forward now: its parameters are gathered. */
bool tape_can_remake(const struct tape_op *op);
/* Makes the values that the op's backward reads, where they were dropped. */
void tape_remake(struct tape *tape, const struct tape_op *op);

/* ---- tape_offload.c ---- */

/* Moves what the entries from `first` on keep, as the next block. */
void tape_offload(struct tape *tape, int first);
/* At the begin of backward: what has not left yet stays. */
void tape_offload_begin_backward(struct tape *tape);
/* In backward: the block's values are there for what is queued from now on. */
void tape_offload_return(struct tape *tape, int block);
/* At the end of a pass, before memory is freed: nothing moves any more. */
void tape_offload_end(struct tape *tape);
void tape_offload_close(struct tape *tape);

#ifdef __cplusplus
}
#endif
#endif
