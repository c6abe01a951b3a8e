/* Layers, in torch.nn's words: each queues its forward on the tape's stream and records its
 * backward, within the borders of its module. This is the vocabulary models are written in. Every
 * function consumes its tensor arguments (tape.h) and returns a new one. */
#ifndef SHOAL_AGENT_NN_H
#define SHOAL_AGENT_NN_H

#include "agent/module.h"
#include "agent/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declare modules below `parent`, described as PyTorch prints them, with its default initial
 * values: weight and bias uniform in +-1/sqrt(fan_in). *next_index counts parameters in declaration
 * order. */
struct module *nn_conv2d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t c_in, int64_t c_out, int64_t kernel);
struct module *nn_linear_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out);
struct module *nn_dropout_new(struct arena *arena, struct module *parent, const char *name,
                              float p);

/* x: [B, H, W, C]. relu: max(0, .) fused into the op. */
struct tensor *nn_conv2d(struct tape *tape, struct module *m, struct tensor *x, bool relu);
/* x: [rows, in]. */
struct tensor *nn_linear(struct tape *tape, struct module *m, struct tensor *x, bool relu);
/* x: [B, H, W, C] -> [B, H/2, W/2, C]. */
struct tensor *nn_max_pool2d(struct tape *tape, struct tensor *x);
/* Elementwise over rows; the identity when not training. layer: names its random numbers within the
 * model. */
struct tensor *nn_dropout(struct tape *tape, struct module *m, struct tensor *x, uint64_t layer);
/* [B, H, W, C] -> [B, C * H * W] in torch.flatten's (channel-major) order. */
struct tensor *nn_flatten(struct tape *tape, struct tensor *x);
/* Log-softmax and negative log likelihood of x: [rows, classes]. Adds to sums (device double[3]:
 * loss, correct, rows; see nll_loss in ops.h) and, in training, starts backward with the gradient
 * of `scale` times the summed loss. target: device int32 [rows], alive until backward has run. */
void nn_cross_entropy(struct tape *tape, struct tensor *x, const int32_t *target, float scale,
                      double *sums);

#ifdef __cplusplus
}
#endif
#endif
