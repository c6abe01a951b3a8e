/* The CUDA backend's ops: one file each. Only files of kernels/cuda include this. */
#ifndef SHOAL_KERNELS_CUDA_OPS_H
#define SHOAL_KERNELS_CUDA_OPS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ops cuda_ops;

/* The ops, as in struct ops. */
void cuda_fill(struct stream *s, float *y, float value, int64_t count);
void cuda_scale(struct stream *s, enum dtype t, void *y, float a, int64_t count);
void cuda_add(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
              int64_t count);
void cuda_cast(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
               int64_t count);
void cuda_normal(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                 float mean, float stddev);
void cuda_clip(struct stream *s, float *y, const double *sum_of_squares, float max_norm,
               int64_t count);
void cuda_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                  float low, float high);
void cuda_normalize(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                    float mean, float stddev);
void cuda_conv2d_forward(struct stream *s, enum dtype t, void *y, const void *x, const void *w,
                         const void *bias, bool relu, const struct conv2d_shape *shape);
void cuda_conv2d_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                               const void *w, const struct conv2d_shape *shape);
void cuda_conv2d_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                  const void *x, const void *dy, const struct conv2d_shape *shape,
                                  bool accumulate);
void cuda_relu_backward(struct stream *s, enum dtype t, void *dx, const void *y, const void *dy,
                        int64_t count);
void cuda_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index, const void *x,
                             int64_t B, int64_t H, int64_t W, int64_t C);
void cuda_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                              const void *dy, int64_t B, int64_t H, int64_t W, int64_t C);
void cuda_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                         int64_t H, int64_t W, int64_t C);
void cuda_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                        int64_t H, int64_t W, int64_t C);
void cuda_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                         const void *w, const void *bias, bool relu,
                         const struct linear_shape *shape);
void cuda_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                               const void *w, const struct linear_shape *shape, bool accumulate);
void cuda_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                  const void *x, const void *dy, const struct linear_shape *shape,
                                  bool accumulate);
void cuda_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                  int64_t cols, float p, uint64_t key, uint64_t first_row, uint64_t row_stride);
void cuda_embedding_forward(struct stream *s, enum dtype t, void *y, const void *w,
                            const int32_t *ids, int64_t rows, int64_t V, int64_t D);
void cuda_embedding_backward(struct stream *s, enum dtype t, float *dw, const void *dy,
                             const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                             bool accumulate);
void cuda_rms_norm_forward(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                           const void *residual, const void *w, int64_t rows, int64_t D, float eps);
void cuda_rms_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                            const void *dy, const void *x, const void *w, const float *rstd,
                            int64_t rows, int64_t D, bool accumulate);
void cuda_layer_norm_forward(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                             const void *residual, const void *w, const void *bias, int64_t rows,
                             int64_t D, float eps);
void cuda_layer_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                              float *dbias, const void *dy, const void *x, const void *w,
                              const float *stats, int64_t rows, int64_t D, bool accumulate);
void cuda_rope(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
               int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse);
void cuda_attention_forward(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                            const void *k, const void *v, const struct attention_shape *shape);
void cuda_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                             float *dbias, const void *dy, const void *y, const float *lse,
                             const void *q, const void *k, const void *v,
                             const struct attention_shape *shape);
void cuda_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                         int64_t I);
void cuda_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                          int64_t rows, int64_t I);
void cuda_gelu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                       bool tanh);
void cuda_gelu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                        int64_t count, bool tanh);
void cuda_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                        const void *logits, const int32_t *target, float scale, int64_t rows,
                        int64_t V);
void cuda_log_softmax(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                      int64_t cols);
void cuda_nll_loss(struct stream *s, double *sums, const float *y, const int32_t *target,
                   int64_t rows, int64_t cols);
void cuda_nll_log_softmax_backward(struct stream *s, enum dtype t, void *dx, const float *y,
                                   const int32_t *target, float scale, int64_t rows, int64_t cols);
void cuda_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count);
void cuda_adadelta(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                   int64_t count, const struct adadelta_step *step, uint64_t key, uint64_t first);
void cuda_sgd(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
              const struct sgd_step *step, uint64_t key, uint64_t first);
void cuda_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
               int64_t count, const struct adam_step *step, uint64_t key, uint64_t first);
void cuda_geglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t I);
void cuda_geglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                         int64_t rows, int64_t I);
void cuda_tanh_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count);
void cuda_tanh_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *y,
                        int64_t count);

#ifdef __cplusplus
}
#endif
#endif
