/* Convolution and what goes with it, for image models. */
#ifndef SHOAL_AGENT_NN_NN_CONV_H
#define SHOAL_AGENT_NN_NN_CONV_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* torch.nn.Conv2d with its default initial values: uniform in +-1/sqrt(fan_in). */
struct module *nn_conv2d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t c_in, int64_t c_out, int64_t kernel);

/* x: [B, H, W, C]. relu: max(0, .) fused into the op. */
struct tensor *nn_conv2d(struct tape *tape, struct module *m, struct tensor *x, bool relu);
/* x: [B, H, W, C] -> [B, H/2, W/2, C]. */
struct tensor *nn_max_pool2d(struct tape *tape, struct tensor *x);
/* [B, H, W, C] -> [B, C * H * W] in torch.flatten's (channel-major) order. */
struct tensor *nn_flatten(struct tape *tape, struct tensor *x);
#endif
