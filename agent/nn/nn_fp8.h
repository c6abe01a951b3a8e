/* Matrix products in fp8: which of a model's are, and what that asks of it.
 *
 * The linear layers of transformer blocks multiply in fp8, all three products of each: y = x w^T
 * from e4m3 values and weights, dx = dy w and dw = dy^T x with e5m2 gradients. x, w, y and dx stay
 * bf16 outside of the product, and dw fp32; sums are fp32. Head, embeddings, norms and attention
 * stay as they are. Scales are current (kernels/fp8.h), so no state is kept between steps. Those of
 * x and w are kept from forward to backward: the codes are made again, from the same bits.
 *
 * A product's tensors are what is scaled. Where several weights are one matrix (nn_linears, on a
 * GPU), they have one scale. Of x it is that of the rank's micro-batch. A weight is gathered in
 * bf16, and scaled and cast here, or in e4m3 with its scale (param.scale): the codes are the
 * same. */
#ifndef SHOAL_AGENT_NN_NN_FP8_H
#define SHOAL_AGENT_NN_NN_FP8_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"
#include "base/error.h"
#include "kernels/ops.h"

/* m's weight, if it is one that multiplies in fp8 where the model does; else NULL. in_block: a
 * module around m is a block. */
struct param *nn_fp8_weight(const struct module *m, bool in_block);
/* From now on the linear layers in the blocks below root are fp8: for tapes of bf16. Returns -1,
 * and changes none, with ERR_CONFIG if there are none, or if the sizes of one are no multiples of
 * FP8_ALIGN: it is named. */
int nn_fp8_begin(struct module *root, struct error *err);
/* Whether that would work; changes nothing. Errors: likewise. */
int nn_fp8_check(const struct module *root, struct error *err);

/* ---- for nn_linear.c and nn_linears.c ---- */

/* y, bf16, as linear_forward makes it. w: the weight, gathered; the first one's of several that are
 * one matrix. Returns what backward needs: a tape_op's `memory`. NULL if the tape has failed. */
void *nn_fp8_forward(struct tape *tape, void *y, const struct tensor *x, const struct param *w,
                     const void *bias, bool relu, const struct linear_shape *shape);

/* Rows of the weight, and so columns of dy, whose gradient lies together. */
struct nn_fp8_part {
    int64_t out;
    float *dw;
    bool add; /* to dw */
};
/* dw, of the parts in their order (shape->out in all), then x's gradient. memory: forward's. dy:
 * the first of shape's columns. A bias is the caller's to do. */
void nn_fp8_backward(struct tape *tape, struct tensor *x, const struct param *w, const void *dy,
                     const void *memory, const struct linear_shape *shape,
                     const struct nn_fp8_part *parts, int part_count);
#endif
