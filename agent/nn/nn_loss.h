/* Losses: where backward starts. Both add to sums (device double[3]: loss, correct, rows that
 * count) and, in training, start backward with the gradient of `scale` times the summed loss.
 * target: device, alive until backward has run. */
#ifndef SHOAL_AGENT_NN_NN_LOSS_H
#define SHOAL_AGENT_NN_NN_LOSS_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* Log-softmax and negative log likelihood of x: [rows, classes]. target: [rows], each in [0,
 * classes). */
void nn_cross_entropy(struct tape *tape, struct tensor *x, const int32_t *target, float scale,
                      double *sums);

/* Elements between two rows of a language model's logits while their loss is computed. On a GPU
 * rows begin at multiples of 128 bytes: products of matrices whose rows begin anywhere are slow. */
int64_t nn_logit_stride(int64_t V, bool is_host);

/* A language model's head with its loss: cross-entropy of x w^T + bias with target: [rows], below 0
 * where there is none. x: [..., D]; weight: [V, D], of head or of the embedding that it is tied to;
 * bias: [V], or NULL. Logits of only chunk_rows rows are alive at once, in x's dtype (cross_entropy
 * in ops.h says what that means in bf16). In training all of it, the loss too, is computed in
 * backward: there each chunk's gradients overwrite its logits. So sums are complete only then. */
void nn_language_loss(struct tape *tape, struct module *head, struct param *weight,
                      struct param *bias, struct tensor *x, const int32_t *target,
                      int64_t chunk_rows, float scale, double *sums);

/* The same head's logits: [rows, V], fp32, in the caller's memory. Not in training. */
void nn_language_logits(struct tape *tape, struct module *head, struct param *weight,
                        struct param *bias, struct tensor *x, float *logits);
#endif
