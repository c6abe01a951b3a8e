/* Every op that trains a model, as one table of functions per device. Queues and memory are those
 * of kernels/device.h. Nothing here knows models, ranks or files.
 *
 * Letters, with one meaning in the whole tree: B batch, H height, W width, C channels, T tokens, V
 * vocabulary, L layers, D model width; in attention H is heads, hd the width of one. Tensors are
 * dense and row-major. Images are channels-last [B, H, W, C] on the device; parameters keep
 * PyTorch's shapes (a convolution's weight is [C_out, C_in, KH, KW], a linear's [out, in]). */
#ifndef SHOAL_KERNELS_OPS_H
#define SHOAL_KERNELS_OPS_H

#include "kernels/device.h"
#include "kernels/dtype.h"
#include "kernels/fp8.h"
#include "kernels/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of an optimizer, as torch.optim's; weight_decay: as L2 on the gradient, but where
 * decoupled. */
struct adadelta_step {
    float lr, rho, eps, weight_decay;
};
struct sgd_step {
    float lr, momentum, weight_decay;
    bool nesterov;
};
struct adam_step {
    float lr, beta1, beta2, eps, weight_decay;
    bool decoupled; /* AdamW */
    int64_t step;   /* from 1 */
};

/* What a step of any optimizer does beside, while it has the gradients and the weights at hand. */
struct update_extras {
    /* NULL: nothing. Else it takes g * min(1, max_norm / (sqrt(sum_of_squares[0]) + 1e-6)) for g:
     * torch.nn.utils.clip_grad_norm_ with a norm that stays on the device. */
    const double *sum_of_squares;
    float max_norm;
    bf16 *copy; /* NULL, or as long as w, of dtype fp32: gets w rounded to the nearest */
};

/* Every op is queued on `s` and is deterministic: the same inputs give the same bits for the same
 * thread count. Tensors given as void * have dtype `t`, all others are fp32 unless said. Gradients
 * of parameters are always fp32; `accumulate`: false overwrites the gradient, true adds to it.
 * Outputs may not overlap inputs unless said. */

/* y = value everywhere. */
typedef void op_fill(struct stream *s, float *y, float value, int64_t count);
/* y = a * y. */
typedef void op_scale(struct stream *s, enum dtype t, void *y, float a, int64_t count);
/* y = y + x, in y's dtype: adds bf16 gradients to fp32 ones. Either may start at any element, such
 * as a row of a tensor. */
typedef void op_add(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
                    int64_t count);
/* y = x, in y's dtype. y may be x if both have the same. */
typedef void op_cast(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
                     int64_t count);
/* y[i] = mean + stddev * z, z the standard normal number at (key, first + i). Numbers come in
 * groups of 32 of random_uniform's: number n of a group, n < 16, is u, and number n + 16 is v.
 * Normal numbers n and n + 16 are sqrt(-2 log(1 - u)) times cos(2 pi v) and sin(2 pi v) (Box and
 * Muller 1958). */
typedef void op_normal(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                       float mean, float stddev);
/* y[i] = low + (high - low) * random_uniform(key, first + i). */
typedef void op_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                        float low, float high);
/* y[i] = (x[i] / 255 - mean) / stddev; x: bytes. torchvision's ToTensor and Normalize. */
typedef void op_normalize(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                          float mean, float stddev);

/* y = conv(x, w) + bias, then max(0, .) if relu (NaN stays NaN, here and below). x: [B, H, W,
 * C_in]; w: [C_out, C_in, KH, KW]; bias: [C_out] or NULL. Cross-correlation, as
 * torch.nn.functional.conv2d. */
typedef void op_conv2d_forward(struct stream *s, enum dtype t, void *y, const void *x,
                               const void *w, const void *bias, bool relu,
                               const struct conv2d_shape *shape);
/* dx of the convolution without relu (see relu_backward). */
typedef void op_conv2d_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                                     const void *w, const struct conv2d_shape *shape);
/* dw and dbias (dbias may be NULL). */
typedef void op_conv2d_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                        const void *x, const void *dy,
                                        const struct conv2d_shape *shape, bool accumulate);

/* dx = y > 0 ? dy : 0, y being relu's output. dx may be dy. */
typedef void op_relu_backward(struct stream *s, enum dtype t, void *dx, const void *y,
                              const void *dy, int64_t count);

/* 2x2 windows, stride 2, over [B, H, W, C]; odd last rows and columns are dropped, as
 * max_pool2d(x, 2). index: [B, H/2, W/2, C] which of the window's four (row-major) was the
 * largest; the first of equals. NaN is larger than all, and the last one counts. */
typedef void op_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index,
                                   const void *x, int64_t B, int64_t H, int64_t W, int64_t C);
typedef void op_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                                    const void *dy, int64_t B, int64_t H, int64_t W, int64_t C);

/* [B, H, W, C] -> [B, C, H, W] (torch.flatten's order), and back. */
typedef void op_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                               int64_t H, int64_t W, int64_t C);
typedef void op_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                              int64_t H, int64_t W, int64_t C);

/* y = x w^T + bias, then max(0, .) if relu. x: [rows, in]; w: linear_shape; bias: [out] or
 * NULL; y: [rows, out] of dtype t_y, which is t or fp32 (logits). */
typedef void op_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y,
                               const void *x, const void *w, const void *bias, bool relu,
                               const struct linear_shape *shape);
typedef void op_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                                     const void *w, const struct linear_shape *shape,
                                     bool accumulate);
/* dw and dbias (dbias may be NULL): fp32. */
typedef void op_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                        const void *x, const void *dy,
                                        const struct linear_shape *shape, bool accumulate);
/* dbias alone. */
typedef void op_linear_backward_bias(struct stream *s, enum dtype t, float *dbias, const void *dy,
                                     const struct linear_shape *shape, bool accumulate);

/* ---- products in fp8 (kernels/fp8.h says what formats and scales are) ---- */

/* scale[0] = that of x: [rows, cols], whose rows are `stride` elements apart. cols and stride are
 * multiples of 8. */
typedef void op_fp8_scale(struct stream *s, enum fp8 f, struct fp8_scale *scale, const bf16 *x,
                          int64_t rows, int64_t cols, int64_t stride);
/* largest[0] = the largest magnitude of x ("amax"), of which a scale could be made; a NaN is larger
 * than all. count: a multiple of 8. */
typedef void op_fp8_largest(struct stream *s, bf16 *largest, const bf16 *x, int64_t count);
/* The codes of x times scale[0].scale, as y: [rows, fp8_padded(cols)] and y_transposed: [cols,
 * fp8_padded(rows)]; either may be NULL. What is padded is 0. x as above. */
typedef void op_fp8_cast(struct stream *s, enum fp8 f, uint8_t *y, uint8_t *y_transposed,
                         const struct fp8_scale *scale, const bf16 *x, int64_t rows, int64_t cols,
                         int64_t stride);
/* y: [cols, rows] = codes x: [rows, cols], transposed. rows and cols are multiples of FP8_ALIGN. */
typedef void op_fp8_transpose(struct stream *s, uint8_t *y, const uint8_t *x, int64_t rows,
                              int64_t cols);
/* The product p of codes a and b. bias: [n], bf16, or NULL; not with accumulate or an fp32 c. On a
 * GPU that has no fp8, the stream fails. */
typedef void op_fp8_matmul(struct stream *s, const struct fp8_matmul *p, void *c, const uint8_t *a,
                           const struct fp8_scale *a_scale, const uint8_t *b,
                           const struct fp8_scale *b_scale, const bf16 *bias);

/* The product before a GELU (tanh's approximation): z as linear_forward's y, of dtype t, and y =
 * gelu(z). Where the shape may be nondeterministic, y may be of z before that is rounded. y and z
 * are dense. */
typedef void op_linear_gelu_forward(struct stream *s, enum dtype t, void *y, void *z, const void *x,
                                    const void *w, const void *bias,
                                    const struct linear_shape *shape);
/* The product behind such a GELU: dz = linear_backward_data's dx times the slope of gelu at z. dx
 * may be rounded in between, or not: by the device and the shape alone. dz, z: [rows, in]. */
typedef void op_linear_gelu_backward_data(struct stream *s, enum dtype t, void *dz, const void *dy,
                                          const void *w, const void *z,
                                          const struct linear_shape *shape);

/* y[r, c] = 0 if random_uniform(key, g * cols + c) < p, else x[r, c] / (1 - p). g = first_row + r *
 * row_stride is the row's index in the batch of all ranks. So the mask does not depend on the
 * number of ranks, if all pad their rows to the same length (cols is part of the index). The op is
 * its own backward (dx from dy). y may be x. 0 <= p < 1. */
typedef void op_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t cols, float p, uint64_t key, uint64_t first_row,
                        uint64_t row_stride);

/* y[r] = w[ids[r]]. w: [V, D]; ids: [rows], each in [0, V). */
typedef void op_embedding_forward(struct stream *s, enum dtype t, void *y, const void *w,
                                  const int32_t *ids, int64_t rows, int64_t V, int64_t D);
/* dw[ids[r]] += dy[r], in an order that depends on the ids alone; without accumulate dw is
 * zeroed first. */
typedef void op_embedding_backward(struct stream *s, enum dtype t, float *dw, const void *dy,
                                   const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                                   bool accumulate);

/* y = w * x * rstd, rstd = 1 / sqrt(mean(x^2) + eps), row by row (Zhang and Sennrich 2019). With
 * bf16, x * rstd is rounded before the product with w, as transformers does. rstd: [rows], fp32,
 * for backward. residual: NULL (x is only read), or x = x + residual comes first, as add() does
 * it. */
typedef void op_rms_norm_forward(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                                 const void *residual, const void *w, int64_t rows, int64_t D,
                                 float eps);
/* dw is summed over the rows in a fixed order. add_dx: dx is added to what is there (rounded
 * first, as add() would); else dx may be dy. */
typedef void op_rms_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                                  const void *dy, const void *x, const void *w, const float *rstd,
                                  int64_t rows, int64_t D, bool accumulate);
/* y = w * (x - mean) * rstd + bias, rstd = 1 / sqrt(var(x) + eps) (torch.nn.LayerNorm). stats:
 * [rows, 2], fp32: mean and rstd. residual and add_dx as above. */
typedef void op_layer_norm_forward(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                                   const void *residual, const void *w, const void *bias,
                                   int64_t rows, int64_t D, float eps);
typedef void op_layer_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx,
                                    float *dw, float *dbias, const void *dy, const void *x,
                                    const void *w, const float *stats, int64_t rows, int64_t D,
                                    bool accumulate);

/* Rotary position embedding in place (Su et al. 2021), in Hugging Face's half-split form:
 * elements i and i + hd/2 of each head rotate by the angle of (token, i). x: the first of `heads`
 * heads of [B * T] tokens that are `stride` elements apart; cos, sin: [T, hd / 2], fp32.
 * inverse: rotates back, which is the op's backward. */
typedef void op_rope(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
                     int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse);

/* y = softmax(scale * q k^T) v, never holding T_q x T_k numbers (Dao et al. 2022). y: [B, T_q,
 * heads, hd]; lse: [B, heads, T_q], fp32: log of the sum of exponents, for backward. With bf16
 * the probabilities and their gradients may be rounded before they are multiplied. */
typedef void op_attention_forward(struct stream *s, enum dtype t, void *y, float *lse,
                                  const void *q, const void *k, const void *v,
                                  const struct attention_shape *shape);
/* dq, dk, dv: strided as q, k, v; written. dbias: [T_q + T_k - 1, heads], fp32, written; NULL
 * without a bias. */
typedef void op_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                                   float *dbias, const void *dy, const void *y, const float *lse,
                                   const void *q, const void *k, const void *v,
                                   const struct attention_shape *shape);

/* y[r, i] = silu(x[r, i]) * x[r, I + i]; x: [rows, 2 I], gate before up; y: [rows, I]. */
typedef void op_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                               int64_t I);
/* dx may be x. */
typedef void op_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy,
                                const void *x, int64_t rows, int64_t I);
/* The same with GELU's tanh approximation for silu (T5 v1.1's "gated-gelu"). */
typedef void op_geglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                              int64_t I);
typedef void op_geglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy,
                               const void *x, int64_t rows, int64_t I);
/* y = tanh(x). y may be x. */
typedef void op_tanh_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count);
/* dx = dy * (1 - y^2). dx may be dy. */
typedef void op_tanh_backward(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *y, int64_t count);
/* Gaussian error linear unit; tanh: its approximation ("gelu_new"). y may be x. */
typedef void op_gelu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                             bool tanh);
/* dx may be dy. */
typedef void op_gelu_backward(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *x, int64_t count, bool tanh);

/* There is no softmax op: attention, cross_entropy and nll_log_softmax_backward contain it. */

/* Cross-entropy of logits [rows, V] with targets [rows]; a target below 0 (-100) is ignored.
 * sums as nll_loss, over the rows that count. dlogits: NULL, or [rows, V], the gradient of
 * scale * loss with respect to the logits; may be logits. Rows of both are `stride` elements apart
 * (>= V); what is between two rows of dlogits may be overwritten. Exponents and their sums are fp32
 * in any dtype. With bf16 each logit and each gradient is rounded once, by at most 2^-9 of itself,
 * as in PyTorch's mixed precision. Of equal logits the first is the largest, as everywhere. */
typedef void op_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                              const void *logits, const int32_t *target, float scale, int64_t rows,
                              int64_t V, int64_t stride);

/* y = x - log(sum(exp(x))) row by row, without overflow. y, fp32, may be x if t is fp32. */
typedef void op_log_softmax(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                            int64_t cols);
/* sums[0] += sum over rows of -y[r, target[r]]; sums[1] += rows whose largest entry (first of
 * equals) is the target; sums[2] += rows. y: log-probabilities; target: [rows], each in [0,
 * cols); sums: double[3]. */
typedef void op_nll_loss(struct stream *s, double *sums, const float *y, const int32_t *target,
                         int64_t rows, int64_t cols);
/* Gradient of scale * nll with respect to log_softmax's input: dx = scale * (exp(y) -
 * onehot(target)). dx may be y if t is fp32. */
typedef void op_nll_log_softmax_backward(struct stream *s, enum dtype t, void *dx, const float *y,
                                         const int32_t *target, float scale, int64_t rows,
                                         int64_t cols);

/* sum[0] += sum of x[i]^2; sum: double[1]. */
typedef void op_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count);
/* The same as a sum whose bits depend on no order and no cut (kernels/exact_sum.h): digits +=, then
 * sum[0] = what the digits of all cuts mean together. digits: double[EXACT_DIGITS] of whole
 * numbers, which are exact below 2^53. count: a multiple of EXACT_BLOCK, and so is each cut: so
 * many neighbours are added as doubles first, in order.
 *
 * A cut adds less than 2^41 to a digit: at most EXACT_CUTS of them between two exact_carry(), which
 * leaves less than 2^32 in each. Digits of 2^20 ranks may be added up after it. */
enum { EXACT_DIGITS = 18, EXACT_BLOCK = 8, EXACT_CUTS = 4095 };
typedef void op_exact_squares(struct stream *s, double *digits, const float *x, int64_t count);
typedef void op_exact_carry(struct stream *s, double *digits);
typedef void op_exact_sum(struct stream *s, double *sum, const double *digits);
/* sums[i] += parts[i], to the nearest whole number of 2^-20, of which sums below 2^33 depend on no
 * order; then parts[i] = 0. */
typedef void op_exact_add(struct stream *s, double *sums, double *parts, int64_t count);

/* Optimizer steps over a flat range of w with its gradient g. w and its state have dtype t; state
 * tensors have w's length and start at 0. bf16 results are rounded stochastically: away from 0 with
 * the probability of the distance, by random_uniform(key, first + i). That depends on the element's
 * place and the step alone, so no layout changes it. extras: NULL: none. */
/* v: average of g^2; u: average of update^2 (Zeiler 2012). */
typedef void op_adadelta(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                         int64_t count, const struct adadelta_step *step,
                         const struct update_extras *extras, uint64_t key, uint64_t first);
/* m: momentum buffer, or NULL if momentum is 0. The first step sets m = g. */
typedef void op_sgd(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
                    const struct sgd_step *step, const struct update_extras *extras, uint64_t key,
                    uint64_t first);
/* m, v: first and second moment. */
typedef void op_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
                     int64_t count, const struct adam_step *step,
                     const struct update_extras *extras, uint64_t key, uint64_t first);

/* clang-format off */
/* All ops, once. struct ops, both backends' prototypes and both tables follow from this list: an op
 * without a function in a backend does not link. */
#define OPS(X) \
    X(fill) X(scale) X(add) X(cast) X(normal) X(uniform) X(normalize) \
    X(conv2d_forward) X(conv2d_backward_data) X(conv2d_backward_weights) X(relu_backward) \
    X(max_pool2d_forward) X(max_pool2d_backward) X(channels_first) X(channels_last) \
    X(linear_forward) X(linear_backward_data) X(linear_backward_weights) X(linear_backward_bias) \
    X(linear_gelu_forward) X(linear_gelu_backward_data) \
    X(fp8_scale) X(fp8_largest) X(fp8_cast) X(fp8_transpose) X(fp8_matmul) X(dropout) \
    X(embedding_forward) X(embedding_backward) \
    X(rms_norm_forward) X(rms_norm_backward) X(layer_norm_forward) X(layer_norm_backward) \
    X(rope) X(attention_forward) X(attention_backward) \
    X(swiglu_forward) X(swiglu_backward) X(geglu_forward) X(geglu_backward) \
    X(tanh_forward) X(tanh_backward) X(gelu_forward) X(gelu_backward) \
    X(cross_entropy) X(log_softmax) X(nll_loss) X(nll_log_softmax_backward) X(sum_of_squares) \
    X(exact_squares) X(exact_carry) X(exact_sum) X(exact_add) X(adadelta) X(sgd) X(adam)
/* clang-format on */

struct ops {
#define OP_MEMBER(op) op_##op *op;
    OPS(OP_MEMBER)
#undef OP_MEMBER
};

/* The device's ops; lives as long as the device. */
const struct ops *device_ops(const struct device *device);

#ifdef __cplusplus
}
#endif
#endif
