/* Scaled dot-product attention as graphs of cuDNN's operations: what ops.h's attention is in its
 * terms. Knows shapes and layouts, not streams: a plan can be made on a machine without a GPU.
 *
 * Conventions, ours and cuDNN's:
 *  - cuDNN's tensors are [B, heads, T, hd] with strides of their own. Our heads lie side by side in
 *    a token, so we describe them in place: strides {T * stride, hd, stride, 1}. y and dy:
 *    {T * heads * hd, hd, heads * hd, 1}.
 *  - The products take k transposed, and in backward v too: the same memory with the last two
 *    dimensions exchanged. A product's gradient for the transposed k needs it as it is: a reshape.
 *  - Grouped heads: k and v have kv_heads, and a product repeats each for its heads / kv_heads
 *    neighbours, which is our h / (heads / kv_heads). Their gradients come for every head and are
 *    added up group by group.
 *  - scale multiplies the scores before the mask, a number in host memory.
 *  - causal: score (q, k) stays where q >= k, else it is -infinity.
 *  - lse is cuDNN's "stats": largest + log(sum), natural, fp32, dense [B, heads, T_q, 1]: our [B,
 *    heads, T_q]. So a forward of theirs goes with a backward of ours, and the other way around.
 *  - Probabilities are rounded to bf16 before they meet v, as ops.h allows.
 *  - Bias and dropout are not here: cuDNN's bias is a whole [T_q, T_k], and its random numbers are
 *    others than ours. Nor are key_counts: padding stays ours.
 *
 * The graphs are those that cuDNN's fused kernels are matched by (NVIDIA's cudnn-frontend makes the
 * same of its attention nodes, node/scaled_dot_product_flash_attention.h): forward is matmul,
 * scale, mask, softmax as max, subtract, exp, sum, divide, and matmul; backward its derivative,
 * with the gradient of q written by the product that makes it. That needs the scores in the
 * workspace: 2 B heads T_q T_k bytes, and 4 B heads T_k hd more where heads are grouped. It ends
 * where that is too much.
 *
 * For a shape that may be nondeterministic, the product's result is a tensor in memory, fp32 and
 * dense, and q's gradient is that, rounded. Its engines add to it tile by tile, in any order, and
 * keep no scores; they write zeros there first (from 9.6 on). Its runs differ in their last bits,
 * which the engines do not report (9.19).
 *
 * Of 9.19's engines, given descriptions of GPUs that were not there: forward has kernels of its own
 * for 8.x, 9.0 and 10.x; this backward has them for 8.x and 9.0, and on 10.x it gets those of
 * 8.x. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_ATTENTION_H
#define SHOAL_KERNELS_CUDA_CUDNN_ATTENTION_H

#include "kernels/cuda/cudnn_graph.h"
#include "kernels/ops.h"

/* Names of the tensors in memory. */
enum cudnn_tensor {
    CUDNN_Q = 1,
    CUDNN_K,
    CUDNN_V,
    CUDNN_Y,
    CUDNN_LSE,
    CUDNN_SCALE,  /* numbers in host memory: scale, */
    CUDNN_MASKED, /* -infinity (causal) */
    CUDNN_ONE,    /* and 1 (backward) */
    CUDNN_DY,
    CUDNN_DELTA, /* sum of dy * y, [B, heads, T_q, 1] fp32: scratch of backward's */
    CUDNN_DQ,
    CUDNN_DQ_SUMS, /* nondeterministic: dq in fp32, [B, heads, T_q, hd]: scratch of backward's */
    CUDNN_DK,
    CUDNN_DV,
    CUDNN_TENSORS,
};

/* A graph and its plan. */
struct cudnn_attention {
    struct cudnn_graph graph;
    cudnn_descriptor plan; /* NULL: there is none, graph.failed and graph.reason say why */
    int64_t workspace; /* bytes, 256-byte aligned; without a plan, what the last engine wanted if
                          that was too much */
};
/* For bf16, a shape without bias, dropout and key_counts; backward or forward. nondeterministic
 * means nothing to forward. */
void cudnn_attention_open(struct cudnn_attention *a, const struct cudnn_api *api,
                          cudnn_descriptor device, const struct attention_shape *shape,
                          bool backward, int64_t most_workspace);
#endif
