/* Offloads activations that backward reads much later to the host. One stream of its own makes all
 * copies, and alone touches the host's memory. A block's memory on the device is freed when the
 * next block is queued: so the copy runs beside that block's compute. */
#include "agent/nn/tape_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

int tape_save_memory(struct tape *tape, enum tape_checkpointing checkpointing, struct device *host,
                     int horizon, struct error *err)
{
    assert(tape->count == 0 && !tape->host && (!host || horizon >= 1));
    tape->checkpointing = checkpointing;
    tape->horizon = horizon;
    if (!host)
        return 0;
    if (stream_open(tape->device, "activations", &tape->copies, err) < 0 ||
        event_open(tape->device, &tape->reached, err) < 0)
        return -1;
    tape->host = host;
    return 0;
}

void tape_offload_close(struct tape *tape)
{
    stream_close(tape->copies);
    event_close(tape->reached);
    for (int i = 0; i < tape->block_opened; i++) {
        event_close(tape->blocks[i].copied);
        free(tape->blocks[i].moved);
    }
    free(tape->blocks);
}

/* ---- offloading, in forward ---- */

/* The next block, empty; NULL if the tape has failed. */
static struct block *open_block(struct tape *tape)
{
    struct error err;
    if (tape->block_count == tape->block_size) {
        tape->block_size = tape->block_size ? 2 * tape->block_size : 16;
        tape->blocks = xrealloc(tape->blocks, (size_t)tape->block_size * sizeof *tape->blocks);
    }
    struct block *block = &tape->blocks[tape->block_count];
    if (tape->block_count == tape->block_opened) {
        *block = (struct block){0};
        if (event_open(tape->device, &block->copied, &err) < 0) {
            tape_fail(tape, &err);
            return NULL;
        }
        tape->block_opened++;
    }
    tape->block_count++;
    block->count = 0;
    block->state = BLOCK_ON_DEVICE;
    return block;
}

/* Whether only recorded ops read the value, and the sum of y, which is soon made. */
static bool is_kept(const struct tensor *t, const struct tensor *y)
{
    return t->readers - (y && y->addend == t) == t->recorded;
}

/* Gives the value a place on the host if it is only kept. */
static void add_to_block(struct tape *tape, struct block *block, struct tensor *t,
                         const struct tensor *y)
{
    struct error err;
    if (!t || t->is_input || !t->data || t->host || !is_kept(t, y) || tape->failed)
        return;
    if (device_alloc(tape->host, MEMORY_ACTIVATION, (size_t)t->count * dtype_bytes(t->dtype),
                     t->what, &t->host, &err) < 0) {
        tape_fail(tape, &err);
        return;
    }
    if (block->count == block->size) {
        block->size = block->size ? 2 * block->size : 16;
        block->moved = xrealloc(block->moved, (size_t)block->size * sizeof(struct tensor *));
    }
    block->moved[block->count++] = t;
}

static void order_copies(struct tape *tape)
{
    event_record(tape->reached, tape->stream);
    stream_wait(tape->copies, tape->reached);
}

static void copy_out(struct tape *tape, struct block *block)
{
    order_copies(tape);
    for (int i = 0; i < block->count; i++) {
        struct tensor *t = block->moved[i];
        stream_copy(tape->copies, t->host, t->data, (size_t)t->count * dtype_bytes(t->dtype));
    }
    event_record(block->copied, tape->copies);
    block->state = BLOCK_COPYING_OUT;
}

/* Frees the device's memory of a block that is copied out. */
static void free_on_device(struct tape *tape, struct block *block)
{
    if (block->state != BLOCK_COPYING_OUT)
        return;
    stream_wait(tape->stream, block->copied);
    for (int i = 0; i < block->count; i++) {
        device_free(tape->device, block->moved[i]->data);
        block->moved[i]->data = NULL;
    }
    block->state = BLOCK_ON_HOST;
}

void tape_offload(struct tape *tape, int first, const struct tensor *y)
{
    struct block *block = tape->failed ? NULL : open_block(tape);
    if (!block)
        return;
    for (int e = first; e < tape->count; e++) {
        const struct tape_op *op = &tape->entries[e].op;
        if (tape->entries[e].kind != ENTRY_OP)
            continue;
        for (int i = 0; i < TAPE_MAX_INPUTS && op->reads_inputs; i++)
            add_to_block(tape, block, op->inputs[i], y);
        if (op->reads_output)
            add_to_block(tape, block, op->output, y);
    }
    copy_out(tape, block);
    if (tape->block_count > 1)
        free_on_device(tape, block - 1);
    tape_append(tape, &(struct entry){.kind = ENTRY_BLOCK, .block = tape->block_count - 1});
}

/* ---- prefetching, in backward ---- */

void tape_offload_begin_backward(struct tape *tape)
{
    struct block *last = tape->block_count ? &tape->blocks[tape->block_count - 1] : NULL;
    if (!last || last->state != BLOCK_COPYING_OUT)
        return;
    stream_wait(tape->stream, last->copied);
    for (int i = 0; i < last->count; i++) {
        device_free(tape->host, last->moved[i]->host);
        last->moved[i]->host = NULL;
    }
    last->state = BLOCK_ON_DEVICE;
}

static void copy_back(struct tape *tape, struct block *block)
{
    if (block->state != BLOCK_ON_HOST)
        return;
    for (int i = 0; i < block->count; i++) {
        struct tensor *t = block->moved[i];
        t->data = tape_alloc_like(tape, t, t->what);
    }
    if (tape->failed)
        return;
    order_copies(tape); /* the memory may have been another tensor's */
    for (int i = 0; i < block->count; i++) {
        struct tensor *t = block->moved[i];
        stream_copy(tape->copies, t->data, t->host, (size_t)t->count * dtype_bytes(t->dtype));
        device_free(tape->host, t->host);
        t->host = NULL;
    }
    event_record(block->copied, tape->copies);
    block->state = BLOCK_COPYING_BACK;
}

void tape_offload_prefetch(struct tape *tape, int block)
{
    for (int i = block; i >= 0 && i >= block - tape->horizon; i--)
        copy_back(tape, &tape->blocks[i]);
    struct block *b = &tape->blocks[block];
    if (b->state == BLOCK_COPYING_BACK) {
        stream_wait(tape->stream, b->copied);
        b->state = BLOCK_ON_DEVICE;
    }
}

void tape_offload_end(struct tape *tape)
{
    for (int i = 0; i < tape->block_count; i++) {
        if (tape->blocks[i].state == BLOCK_COPYING_OUT ||
            tape->blocks[i].state == BLOCK_COPYING_BACK)
            stream_wait(tape->stream, tape->blocks[i].copied);
    }
    tape->block_count = 0;
}
