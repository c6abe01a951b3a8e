#include "agent/nn/nn_internal.h"

#include <math.h>

void nn_add_weight_and_bias(struct arena *arena, struct module *m, uint64_t *next_index, int dims,
                            const int64_t *shape)
{
    int64_t fan_in = 1;
    for (int d = 1; d < dims; d++)
        fan_in *= shape[d];
    float bound = 1.0f / sqrtf((float)fan_in);
    const struct param_init init = {INIT_UNIFORM, -bound, bound};
    module_add_param(arena, m, "weight", (*next_index)++, dims, shape, init);
    module_add_param(arena, m, "bias", (*next_index)++, 1, shape, init);
}

void *nn_gradient_through_relu(struct tape *tape, struct tensor *y)
{
    nn_ops(tape)->relu_backward(tape_stream(tape), y->dtype, y->gradient, y->data, y->gradient,
                                y->count);
    return y->gradient;
}
