/* The kernels of one block of a transformer, forward, backward and made again, added to a step; and
 * what adds one kernel. Private to time_step*.c. Pure. */
#ifndef SHOAL_AGENT_PLAN_TIME_STEP_INTERNAL_H
#define SHOAL_AGENT_PLAN_TIME_STEP_INTERNAL_H

#include "agent/plan/time_step.h"

struct time_walk {
    const struct time_device *device;
    const struct time_shape *shape;
    const struct time_ways *ways;
    struct time_step *step; /* what is added to */
    bool adds;              /* weights' gradients have an earlier micro-batch's */
};

/* `count` kernels, or groups of `launches` kernels each, of `seconds` each. */
void time_add(struct time_walk *w, enum time_kind kind, double seconds, int64_t count,
              int64_t launches);
/* Passes over `bytes` each, in so many launches each. time_pass(): over activations, so
 * TIME_PASSES, and as many bytes as the ways say. */
void time_pass_of(struct time_walk *w, enum time_kind kind, double bytes, int64_t count,
                  int64_t launches, double efficiency);
void time_pass(struct time_walk *w, double bytes, int64_t count, int64_t launches,
               double efficiency);

/* What a linear layer of `out` by `in` does with rows. DATA: the input's gradient; ADDS: to another
 * layer's. */
enum time_linear {
    TIME_LINEAR_FORWARD,
    TIME_LINEAR_DATA,
    TIME_LINEAR_DATA_ADDS,
    TIME_LINEAR_WEIGHTS,
};
void time_linear(struct time_walk *w, enum time_linear kind, int64_t rows, int64_t out, int64_t in,
                 int64_t count);
/* passes: over the norm's input, of R rows, in all. */
void time_norm_backward(struct time_walk *w, int64_t R, int passes);

/* A block of a stack. */
struct time_block {
    int64_t T;        /* tokens of a row */
    int64_t source_T; /* of the encoder's output that it sees; 0: it sees none */
    bool causal;
};
void time_block_forward(struct time_walk *w, const struct time_block *block);
void time_block_backward(struct time_walk *w, const struct time_block *block);
/* What backward makes again. */
void time_block_again(struct time_walk *w, const struct time_block *block);
#endif
