/* Private to the layers, nn_*.c: what they share. */
#ifndef SHOAL_AGENT_NN_NN_INTERNAL_H
#define SHOAL_AGENT_NN_NN_INTERNAL_H

#include "agent/nn/tape.h"
#include "kernels/ops.h"

#include <string.h>

enum { NN_WEIGHT, NN_BIAS }; /* module.params of every layer that has them */

static inline const struct ops *nn_ops(const struct tape *tape)
{
    return device_ops(stream_device(tape_stream(tape)));
}

/* The values of a module's bias; NULL if it has none. */
static inline const void *nn_bias(const struct module *m)
{
    return m->param_count > NN_BIAS ? m->params[NN_BIAS]->value : NULL;
}

/* Element `index` of a tensor's data or gradient. */
static inline void *nn_at(void *memory, enum dtype dtype, int64_t index)
{
    return (char *)memory + index * (int64_t)dtype_bytes(dtype);
}

/* Declares "weight" of this shape and "bias" of its first dimension with PyTorch's default initial
 * values: uniform in +-1/sqrt(fan_in). */
void nn_add_weight_and_bias(struct arena *arena, struct module *m, uint64_t *next_index, int dims,
                            const int64_t *shape);

/* ---- nn_linear.c's ---- */

/* y = x w^T, of nn_linear's module: y's value alone. Returns the op's memory, where it is in fp8;
 * else NULL. */
void *nn_multiply(struct tape *tape, const struct module *m, const struct tensor *x, void *y,
                  enum dtype t_y, bool relu, const struct linear_shape *shape);
/* A tensor of x's shape but for the last dimension, which errors call `what`. NULL if the tape has
 * failed. */
struct tensor *nn_new_columns(struct tape *tape, const struct tensor *x, int64_t width,
                              const char *what);
/* nn_linear()'s op between the borders of its module: into columns of y from this one on. y is the
 * caller's, and may be NULL on a failed tape. Consumes x. */
void nn_linear_into(struct tape *tape, struct module *m, struct tensor *x, struct tensor *y,
                    int64_t column);

/* ---- relu and GELU ---- */

/* Applies relu's backward, in place, to the gradient of an output whose op ended in a relu. NULL if
 * the tape has failed. */
void *nn_gradient_through_relu(struct tape *tape, struct tensor *y);

/* Records that y is the GELU of x; y has its value already, and may be NULL on a failed tape.
 * Consumes x. Returns y. */
struct tensor *nn_gelu_made(struct tape *tape, struct tensor *x, struct tensor *y, bool tanh);

/* The numbers an op keeps for its backward. */
#define NN_SET_ARGS(op, value)                                                                     \
    do {                                                                                           \
        _Static_assert(sizeof(value) <= sizeof(op).args, "too many numbers for an op");            \
        memcpy((op).args, &(value), sizeof(value));                                                \
    } while (0)
#define NN_GET_ARGS(op, value) memcpy(&(value), (op)->args, sizeof(value))
#endif
