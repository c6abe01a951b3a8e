/* Inside the CPU backend: a stream is one worker thread with a queue of closures; an op is a
 * function that checks its arguments and queues a closure. Only files of kernels/cpu include this.
 */
#ifndef SHOAL_KERNELS_CPU_CPU_H
#define SHOAL_KERNELS_CPU_CPU_H

#include "kernels/backend.h"

#include <assert.h>

enum { CPU_CLOSURE_MAX_BYTES = STREAM_CALL_MAX_BYTES + 32 };

/* Queues run(args) with a copy of the `bytes` at `args`. Blocks while the queue is full. name: of
 * the op in traces, behind a "cpu_"; it lives on. NULL: it is none. */
void cpu_queue(struct stream *s, const char *name, void (*run)(void *args), const void *args,
               size_t bytes);

/* cpu_call(s, fill_run, struct fill_args, y, value, count): an args struct made in place. */
#define cpu_call(s, run, type, ...)                                                                \
    do {                                                                                           \
        _Static_assert(sizeof(type) <= CPU_CLOSURE_MAX_BYTES, "closure too large");                \
        cpu_queue((s), __func__, (run), &(type){__VA_ARGS__}, sizeof(type));                       \
    } while (0)

/* The same for work that is the sum of its pieces: piece(args, first, last) does [first, last) of
 * `count`; the stream's threads share the pieces, each of `grain` or fewer at the end. */
typedef void cpu_piece(const void *args, int64_t first, int64_t last);
void cpu_queue_pieces(struct stream *s, const char *name, cpu_piece *piece, int64_t count,
                      int64_t grain, const void *args, size_t bytes);

enum { CPU_GRAIN = 8192 }; /* elements worth a piece: they and their neighbours fit the L1 cache */

#define cpu_call_pieces(s, piece, count, grain, type, ...)                                         \
    do {                                                                                           \
        _Static_assert(sizeof(type) <= STREAM_CALL_MAX_BYTES, "closure too large");                \
        cpu_queue_pieces((s), __func__, (piece), (count), (grain), &(type){__VA_ARGS__},           \
                         sizeof(type));                                                            \
    } while (0)

/* From inside a closure: fails its stream. The first failure stays. */
void cpu_fail(struct stream *s, const struct error *err);

/* From inside a closure: memory for its own use, kept by the stream and grown when needed; valid
 * until the closure ends. 64-byte aligned; not counted as device memory. */
void *cpu_scratch(struct stream *s, size_t bytes);

/* Functions with long loops are compiled twice, for AVX2 and FMA and for what the build asks for,
 * and the machine chooses when the program starts: before sanitizers are ready, so not with them.
 * Nor with clang, which builds fuzz targets only: its version 14 makes one name of two static ones.
 */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) &&                 \
    !defined(__SANITIZE_ADDRESS__)
#define CPU_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_HOT
#endif

/* Sums over rows are made in this many parts, each of rows in order, whatever the thread count. */
enum { CPU_ROW_PARTS = 16 };

/* sums: [cols] (+)= the sum of the rows of x: [rows, cols], `stride` elements apart: the gradient
 * of a bias. From inside a closure; uses its threads. */
void cpu_sum_rows(float *sums, enum dtype t, const void *x, int64_t rows, int64_t cols,
                  int64_t stride, bool accumulate);

extern const struct ops cpu_ops;

/* The ops, as in struct ops. */
void cpu_fill(struct stream *s, float *y, float value, int64_t count);
void cpu_scale(struct stream *s, enum dtype t, void *y, float a, int64_t count);
void cpu_add(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
             int64_t count);
void cpu_cast(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
              int64_t count);
void cpu_normal(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first, float mean,
                float stddev);
void cpu_clip(struct stream *s, float *y, const double *sum_of_squares, float max_norm,
              int64_t count);
void cpu_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first, float low,
                 float high);
void cpu_normalize(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                   float mean, float stddev);
void cpu_conv2d_forward(struct stream *s, enum dtype t, void *y, const void *x, const void *w,
                        const void *bias, bool relu, const struct conv2d_shape *shape);
void cpu_conv2d_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct conv2d_shape *shape);
void cpu_conv2d_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct conv2d_shape *shape,
                                 bool accumulate);
void cpu_relu_backward(struct stream *s, enum dtype t, void *dx, const void *y, const void *dy,
                       int64_t count);
void cpu_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index, const void *x,
                            int64_t B, int64_t H, int64_t W, int64_t C);
void cpu_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                             const void *dy, int64_t B, int64_t H, int64_t W, int64_t C);
void cpu_channels_first(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                        int64_t H, int64_t W, int64_t C);
void cpu_channels_last(struct stream *s, enum dtype t, void *y, const void *x, int64_t B, int64_t H,
                       int64_t W, int64_t C);
void cpu_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                        const void *w, const void *bias, bool relu,
                        const struct linear_shape *shape);
void cpu_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct linear_shape *shape, bool accumulate);
void cpu_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct linear_shape *shape,
                                 bool accumulate);
void cpu_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows, int64_t cols,
                 float p, uint64_t key, uint64_t first_row, uint64_t row_stride);
void cpu_embedding_forward(struct stream *s, enum dtype t, void *y, const void *w,
                           const int32_t *ids, int64_t rows, int64_t V, int64_t D);
void cpu_embedding_backward(struct stream *s, enum dtype t, float *dw, const void *dy,
                            const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                            bool accumulate);
void cpu_rms_norm_forward(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                          const void *residual, const void *w, int64_t rows, int64_t D, float eps);
void cpu_rms_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                           const void *dy, const void *x, const void *w, const float *rstd,
                           int64_t rows, int64_t D, bool accumulate);
void cpu_layer_norm_forward(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                            const void *residual, const void *w, const void *bias, int64_t rows,
                            int64_t D, float eps);
void cpu_layer_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                             float *dbias, const void *dy, const void *x, const void *w,
                             const float *stats, int64_t rows, int64_t D, bool accumulate);
void cpu_rope(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
              int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse);
void cpu_attention_forward(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                           const void *k, const void *v, const struct attention_shape *shape);
void cpu_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                            float *dbias, const void *dy, const void *y, const float *lse,
                            const void *q, const void *k, const void *v,
                            const struct attention_shape *shape);
void cpu_swiglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                        int64_t I);
void cpu_swiglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                         int64_t rows, int64_t I);
void cpu_geglu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                       int64_t I);
void cpu_geglu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                        int64_t rows, int64_t I);
void cpu_tanh_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count);
void cpu_tanh_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *y,
                       int64_t count);
void cpu_gelu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                      bool tanh);
void cpu_gelu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                       int64_t count, bool tanh);
void cpu_cross_entropy(struct stream *s, enum dtype t, void *dlogits, double *sums,
                       const void *logits, const int32_t *target, float scale, int64_t rows,
                       int64_t V);
void cpu_log_softmax(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                     int64_t cols);
void cpu_nll_loss(struct stream *s, double *sums, const float *y, const int32_t *target,
                  int64_t rows, int64_t cols);
void cpu_nll_log_softmax_backward(struct stream *s, enum dtype t, void *dx, const float *y,
                                  const int32_t *target, float scale, int64_t rows, int64_t cols);
void cpu_sum_of_squares(struct stream *s, double *sum, const float *x, int64_t count);
void cpu_adadelta(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                  int64_t count, const struct adadelta_step *step, uint64_t key, uint64_t first);
void cpu_sgd(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
             const struct sgd_step *step, uint64_t key, uint64_t first);
void cpu_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
              int64_t count, const struct adam_step *step, uint64_t key, uint64_t first);

#endif
