/* Reverse-mode differentiation: records the ops of a forward pass and runs them backwards. The tape
 * knows the device and modules, not ranks: the shard engine gathers parameters and reduces
 * gradients in hooks at the modules' borders.
 *
 * Lifetime rule, for the least memory: an op consumes its input tensors. To use a tensor twice,
 * tape_retain() it first. The tape keeps what backward reads, and frees it as backward passes.
 *
 * Failure rule, so that models read like the paper: the tape remembers its first failure (device
 * memory, a hook). Ops on a failed tape do nothing and return NULL, and ops accept NULL.
 * tape_backward() or tape_finish() reports the failure. */
#ifndef SHOAL_AGENT_NN_TAPE_H
#define SHOAL_AGENT_NN_TAPE_H

#include "agent/nn/module.h"
#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* An activation: dense, on the tape's device, of the tape's dtype; so is its gradient. Its value
 * lives as long as the model holds it or a recorded op reads it in backward. Its gradient lives
 * from the first op that writes it to the op that consumes it. */
struct tensor {
    const char *what; /* names it in errors; outlives the pass */
    enum dtype dtype;
    void *data;            /* NULL once nobody reads the value */
    void *gradient;        /* NULL until backward reaches it */
    struct tensor *shares; /* the other tensor that has its gradient in the same memory, or NULL */
    struct tensor *addend; /* NULL, or what the norm that reads the value first adds to it: the
                              value is not whole before (nn_add_later) */
    int dims;
    int64_t shape[MODULE_MAX_DIMS];
    int64_t count;
    bool is_input;  /* memory of the caller's; needs no gradient */
    int readers;    /* who needs the value: the model's references, and recorded ops */
    int recorded;   /* those of the readers that are recorded ops */
    int references; /* who needs the tensor; freed at 0 */
    int maker;      /* 1 + the entry of the op that can recompute a dropped value; 0: none */
    void *host;     /* the value while it is offloaded (tape_save_memory), or NULL */
};

/* Called on the host while ops are being queued, in the order of the pass. */
struct tape_hooks {
    void *ctx;
    /* The parameters of the module's unit must have values after this. */
    int (*before_forward)(void *ctx, struct module *m, struct error *err);
    int (*after_forward)(void *ctx, struct module *m, struct error *err);
    /* Values again, and gradients to write to. */
    int (*before_backward)(void *ctx, struct module *m, struct error *err);
    /* All gradients of the module are queued. */
    int (*after_backward)(void *ctx, struct module *m, struct error *err);
};

/* What a pass is: how random numbers are named and which rows of the global batch this rank has. */
struct tape_pass {
    bool training;      /* false: nothing is recorded, dropout is the identity */
    uint64_t seed;      /* dropout's */
    uint64_t step;      /* micro-batches before this one in the whole run */
    uint64_t first_row; /* this rank's first row in the batch of all ranks, and the distance to its
                           next */
    uint64_t row_stride;
    bool nondeterministic; /* ops may add up in any order (kernels/shapes.h) */
};

struct tape;

/* stream: where all ops go. dtype: of activations, and of the parameters' values. hooks: copied;
 * NULL for none. */
int tape_open(struct stream *stream, enum dtype dtype, const struct tape_hooks *hooks,
              struct tape **ret_tape, struct error *err);
void tape_close(struct tape *tape); /* NULL-safe */

/* What forward keeps for backward: activation checkpointing. All three give the same bits. */
enum tape_checkpointing {
    TAPE_CHECKPOINTING_NONE,
    TAPE_CHECKPOINTING_SELECTIVE, /* drops outputs of ops with a recompute function, which recompute
                                     them */
    TAPE_CHECKPOINTING_FULL,      /* keeps a segment's inputs alone; the segment runs again */
};
/* Trades time (checkpointing) or PCIe bandwidth (host) for device memory; the default is to keep
 * all values on the device. host: a segment's kept values are copied there after its forward, and
 * back `horizon` (>= 1) segments before backward reads them; NULL: they stay. The tape uses host
 * until tape_close(). */
int tape_save_memory(struct tape *tape, enum tape_checkpointing checkpointing, struct device *host,
                     int horizon, struct error *err);

enum tape_checkpointing tape_checkpointing(const struct tape *tape);

/* Starts a pass; the one before must be finished. */
void tape_begin(struct tape *tape, const struct tape_pass *pass);
const struct tape_pass *tape_current(const struct tape *tape);
struct stream *tape_stream(const struct tape *tape);
enum dtype tape_dtype(const struct tape *tape);

/* Whether ops are recorded now: not in evaluation, nor in a segment that will run again. */
bool tape_is_recording(const struct tape *tape);

/* Borders of a module in the forward pass; every enter has its leave. */
void tape_enter(struct tape *tape, struct module *m);
void tape_leave(struct tape *tape, struct module *m);

/* A tensor around memory that is not the tape's (an input); it needs no gradient and is never freed
 * by it. */
struct tensor *tape_input(struct tape *tape, void *data, int dims, const int64_t *shape);
/* A fresh activation for an op's output, with one reference. what: names it in errors; outlives the
 * pass. NULL if the tape has failed. */
struct tensor *tape_tensor(struct tape *tape, int dims, const int64_t *shape, const char *what);
/* One more use of the tensor. Returns it. NULL-safe. */
struct tensor *tape_retain(struct tensor *t);
/* One use less. NULL-safe. */
void tape_release(struct tape *tape, struct tensor *t);
/* t has no addend from now on: it was added, or nobody reads the sum. */
void tape_release_addend(struct tape *tape, struct tensor *t);

/* Device memory for an op to hand to tape_record() (saved indices, ...). NULL if the tape has
 * failed. */
void *tape_alloc(struct tape *tape, size_t bytes, const char *what);

/* A copy on the device of constant host memory (a table of angles). The first call makes it; it
 * lives until tape_close(). At most TAPE_MAX_CONSTANTS different ones. NULL if the
 * tape has failed. */
enum { TAPE_MAX_CONSTANTS = 48 };
const void *tape_constant(struct tape *tape, const void *host, size_t bytes, const char *what);

enum { TAPE_MAX_INPUTS = 3 };

/* A segment: a part of a forward pass (a transformer block) that may run again in backward. It
 * reads a few activations (NULL behind the last) and returns one. All else that it reads is in
 * `args` or outlives the pass; the pass names its random numbers. A segment consumes its inputs. An
 * input of several segments (the encoder's output in a decoder) gets the sum of their gradients. */
typedef struct tensor *tape_run(struct tape *tape, const void *args,
                                struct tensor *const inputs[TAPE_MAX_INPUTS]);
enum { TAPE_ARGS_WORDS = 16, TAPE_SEGMENT_ARGS_BYTES = (TAPE_ARGS_WORDS - 1) * 8 };
/* Runs a segment as tape_save_memory() says, with a copy of the `bytes` (<=
 * TAPE_SEGMENT_ARGS_BYTES) at args. When it runs again, it enters its modules with backward's
 * hooks. */
struct tensor *tape_segment(struct tape *tape, tape_run *run, const void *args, size_t bytes,
                            struct tensor *const inputs[TAPE_MAX_INPUTS]);

/* An op that was queued forward, to be run backwards. */
struct tape_op {
    /* Queues the op's backward: takes output's gradient, gives the inputs' (tape_gradient,
     * tape_accumulate_gradient) and the parameters' (tape_param_gradient). Not called if nothing
     * gave the output a gradient. */
    void (*backward)(struct tape *tape, struct tape_op *op);
    /* NULL, or queues the forward again: writes output's value (fresh memory) and `memory`, with
     * the same bits. For cheap ops that read their inputs. */
    void (*recompute)(struct tape *tape, const struct tape_op *op);
    struct module *module; /* whose parameters it used, or NULL */
    struct tensor *output; /* NULL for a loss */
    struct tensor *inputs[TAPE_MAX_INPUTS];
    bool reads_output, reads_inputs; /* which values backward reads */
    void *memory;                    /* from tape_alloc(), or NULL */
    int64_t args[TAPE_ARGS_WORDS];   /* the op's own numbers: a struct, copied in and out */
};
/* Records an op. It consumes the inputs and `memory`: the tape frees them behind backward, or at
 * once if the pass is not training. The output's reference stays the caller's. */
void tape_record(struct tape *tape, const struct tape_op *op);

/* Memory for an op to write one gradient of `t` to. NULL if t needs none or the tape has failed. */
void *tape_gradient(struct tape *tape, struct tensor *t);
/* The memory, which the op has written, becomes t's gradient or is added to it. */
void tape_accumulate_gradient(struct tape *tape, struct tensor *t, void *gradient);
/* Memory for an op to write an input's gradient to: that of t's own, which is t's no more; or fresh
 * memory where another tensor shares that. The op looks t->gradient up before, and reads it there.
 * NULL if the tape has failed. */
void *tape_steal_gradient(struct tape *tape, struct tensor *t);
/* t's gradient, for an op that writes it in place; a copy from now on where it was shared. NULL if
 * the tape has failed. */
void *tape_own_gradient(struct tape *tape, struct tensor *t);
/* For ops that can accumulate in place: t's gradient (*ret_accumulate is true), or fresh memory,
 * which is t's gradient from now on and which the op writes. NULL as tape_gradient. */
void *tape_gradient_in_place(struct tape *tape, struct tensor *t, bool *ret_accumulate);
/* y's gradient is x's, too, as x's and y's are of their sum. It is added to the one that x has; if
 * x has none, it shares y's memory. The first of the two that is written while both are read gets
 * memory of its own. In a residual stream none is: y's reader is done before x's writer. */
void tape_share_gradient(struct tape *tape, struct tensor *x, struct tensor *y);
/* Where a parameter's gradient goes; *ret_accumulate: the op adds to it. The hooks
 * own the memory. */
float *tape_param_gradient(struct param *p, bool *ret_accumulate);

bool tape_failed(const struct tape *tape);
void tape_fail(struct tape *tape, const struct error *err);

/* Runs all recorded ops backwards and ends the pass. The loss op seeds the gradient (nn_loss.h). */
int tape_backward(struct tape *tape, struct error *err);
/* Ends a pass without backward (evaluation); frees all it still holds. */
int tape_finish(struct tape *tape, struct error *err);
#endif
