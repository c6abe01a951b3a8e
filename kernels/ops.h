/* Device memory, streams, events, and every op that trains a model: the only door to a device.
 *
 * A backend (cpu, cuda) is one table of functions behind this header; both can live in
 * one process. All device work is asynchronous: an op is put on a stream and runs in stream order.
 * Ops cannot fail when they are called: a shape that does not fit is a bug (assert), and a failure
 * on the device is remembered by the stream, which skips what follows and reports it in
 * stream_sync(). Nothing here knows models, ranks or files.
 *
 * Letters, with one meaning in the whole tree: B batch, H height, W width, C channels, T tokens, V
 * vocabulary, L layers, D model width; in attention H is heads, hd the width of one. Tensors are
 * dense and row-major. Images are channels-last [B, H, W, C] on the device; parameters keep
 * PyTorch's shapes (a convolution's weight is [C_out, C_in, KH, KW], a linear's [out, in]).
 * Pointers are device pointers, 16-byte aligned, unless a comment says host. */
#ifndef SHOAL_KERNELS_OPS_H
#define SHOAL_KERNELS_OPS_H

#include "base/error.h"
#include "kernels/dtype.h"
#include "kernels/graph.h"
#include "kernels/shapes.h"
#include "kernels/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices and their memory ---- */

/* What a piece of device memory is for. Bytes are counted per kind. */
enum memory_kind {
    MEMORY_SHARD,      /* this rank's slice of the parameters, fp32 */
    MEMORY_UNIT,       /* gathered parameters of a unit */
    MEMORY_GRADIENT,   /* gradients, gathered and sharded */
    MEMORY_OPTIMIZER,  /* optimizer state */
    MEMORY_ACTIVATION, /* what forward keeps for backward, and gradients of activations */
    MEMORY_INPUT,      /* batches, and sums of a step */
    MEMORY_KINDS,
};
const char *memory_kind_name(enum memory_kind kind); /* "shard", "unit", ... */

struct memory_use {
    int64_t current_bytes[MEMORY_KINDS];
    int64_t
        peak_bytes[MEMORY_KINDS]; /* each kind's own peak; they need not be at the same moment */
    int64_t current_total_bytes;
    int64_t peak_total_bytes; /* the most that was alive at one moment */
    int64_t fresh_blocks;     /* requests so far that the system had to serve: what was freed is
                                 given out again, so a loop of equal steps should need none */
    int64_t reserved_bytes;   /* by device_reserve(); 0: nothing */
    int64_t beyond_bytes;     /* held beside it, asked for since then: they had no room in it */
};

struct device;

/* Opens a device. name: "cpu"; "cuda" or "cuda:N", the Nth GPU this process may see (0 without N).
 * threads: how many threads an op may use on the CPU (>= 1). Errors: ERR_UNSUPPORTED, naming the
 * reason: no such backend in this build, no driver, a driver or GPU that is too old, no such
 * GPU. */
int device_open(const char *name, int threads, struct device **ret_device, struct error *err);
/* Opens the CPU as a device whose memory copies to and from `peer` use at full speed, beside the
 * host (page-locked for a GPU): for what lives on the host and visits the peer. Closed before the
 * peer. */
int device_open_host(struct device *peer, int threads, struct device **ret_device,
                     struct error *err);
void device_close(struct device *device); /* NULL-safe; all its streams are closed before */
const char *device_name(const struct device *device); /* "cpu", "cuda" */
/* Which piece of hardware it is: "GPU-" and its UUID, which no other has on any machine; "" on the
 * CPU. */
enum { DEVICE_IDENTITY_BYTES = 48 };
const char *device_identity(const struct device *device);
/* The newest CUDA that its driver knows: 12030 is 12.3; 0 on the CPU. */
int device_driver(const struct device *device);
/* Its compute capability as 10 major + minor: 90 is 9.0; 0 on the CPU. */
int device_architecture(const struct device *device);
/* The PCI id of the GPU that device_open(name) would open, as Linux writes it ("0000:1b:00.0"),
 * without opening it. False if that is no GPU, or there is none. out: DEVICE_PCI_BYTES. */
enum { DEVICE_PCI_BYTES = 16 };
bool device_pci(const char *name, char *out);
/* GPUs that device_open("cuda:N") could open; 0 with the reason in ret_reason (error's text). */
int device_count_gpus(struct error *ret_reason);
/* Whether the host may read and write the device's memory: false for a GPU, whose memory only
 * stream_copy() reaches. */
bool device_is_host(const struct device *device);
/* Bytes the device could still give, of ret_total: for refusing early what does not fit. */
int64_t device_memory_free_bytes(const struct device *device, int64_t *ret_total);

/* Asks the system at once for all the memory that is expected to be needed: from now on memory on
 * the device comes from it, and only what has no room there is asked for apart (see beyond_bytes).
 * Once a device, given back when it is closed. Errors: ERR_MEMORY. */
int device_reserve(struct device *device, size_t bytes, struct error *err);

/* Memory on the device, 64-byte aligned, not zeroed. `what` names it in errors ("fc1 gradient").
 * Stream-ordered like a caching allocator: memory may be freed while work that uses it is still
 * queued, and is given out again at once, so it must be used on the one stream that queued that
 * work, or events must order its users. Errors: ERR_MEMORY names what, the bytes asked for and the
 * bytes in use. Not thread-safe. */
int device_alloc(struct device *device, enum memory_kind kind, size_t bytes, const char *what,
                 void **ret_memory, struct error *err);
void device_free(struct device *device, void *memory); /* NULL-safe */

/* Bytes asked for by device_alloc and not yet freed, and their peaks since device_open or the last
 * reset. Not in it: what the allocator keeps for the next request, and an op's own scratch. */
void device_memory_use(const struct device *device, struct memory_use *ret_use);
void device_memory_reset_peak(struct device *device);
/* Allocations that would put more than `bytes` in use fail from now on (ERR_MEMORY); 0: no limit.
 * For a device that is shared with others. */
void device_memory_set_limit(struct device *device, int64_t bytes);
/* Widens memory[bytes], which lies in what device_alloc() gave, to all of what device_reserve()
 * asked for, if it was cut from there: for libraries that are told of memory. */
void device_memory_widen(const struct device *device, const void **memory, size_t *bytes);
/* leaves(ctx, block, bytes) is called, by who calls device_alloc() or device_close(), before memory
 * that was freed goes back to the system, and nothing uses it any more: for libraries that were
 * told of it. One at a time; NULL: nobody. */
void device_memory_on_release(struct device *device,
                              void (*leaves)(void *ctx, void *block, size_t bytes), void *ctx);

/* Host memory that copies to and from the device run beside the host (page-locked for a GPU),
 * 64-byte aligned, not zeroed, not counted. Errors: ERR_MEMORY naming `what` and the bytes. */
int device_host_alloc(struct device *device, size_t bytes, const char *what, void **ret_memory,
                      struct error *err);
void device_host_free(struct device *device, void *memory); /* NULL-safe; no copy uses it */

/* ---- streams and events ---- */

struct stream;
struct event;

/* What is queued waits for room when a stream is very far behind (about a thousand ops on the CPU).
 */
int stream_open(struct device *device, const char *name, struct stream **ret_stream,
                struct error *err);
/* Likewise, for work that others will wait for (collectives): where it and that of other streams
 * could begin it goes first. What runs is not interrupted; the CPU's streams run side by side. */
int stream_open_first(struct device *device, const char *name, struct stream **ret_stream,
                      struct error *err);
void stream_close(struct stream *stream); /* NULL-safe; waits for what is queued */
struct device *stream_device(const struct stream *stream);
/* The backend's own name for it, for libraries that put work on it (NCCL's cudaStream_t); NULL on
 * the CPU. Launches what a graph has captured so far. */
void *stream_native(struct stream *stream);

/* Waits until everything queued so far is done. Returns the first failure of the stream since it
 * was opened (the stream stays failed and skips all later work), else what the device's guard says,
 * else 0. */
int stream_sync(struct stream *stream, struct error *err);
/* is_well(ctx, err) knows of failures that streams do not: those of libraries that put work on
 * them. When a stream of the device is done, stream_sync() asks it, on its own thread. One at a
 * time; NULL: nobody. */
void device_guard(struct device *device, int (*is_well)(void *ctx, struct error *err), void *ctx);

enum { STREAM_CALL_MAX_BYTES = 256 };
/* Puts a host function on the stream: it runs in stream order on a thread of the backend's
 * choosing, with a copy of the `bytes` (<= STREAM_CALL_MAX_BYTES) at `args`. A negative result
 * fails the stream with *err. It may touch host memory (device_is_host) but must not call into this
 * header. For collectives over the host. */
void stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                 const void *args, size_t bytes);

/* dst and src may be of different devices; neither may be freed before the copy ran. */
void stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes);

/* *ret_ns = when the stream reaches this point, in nanoseconds of the device's clock: only
 * differences mean something. Host memory, written when stream_sync() returns; a failed stream does
 * not write it. */
void stream_stamp(struct stream *stream, int64_t *ret_ns);

int event_open(struct device *device, struct event **ret_event, struct error *err);
void event_close(struct event *event); /* NULL-safe */
/* Marks the point the stream has reached; an event can be recorded again and again. */
void event_record(struct event *event, struct stream *stream);
/* Whether the stream has come to the point last recorded, or never will (no record: true). From any
 * thread, while no other records it. */
bool event_has_passed(const struct event *event);
/* What is queued on `stream` from now on waits for the point last recorded in `event` (no record:
 * does not wait). If the recorded stream has failed, this one fails with the same error. */
void stream_wait(struct stream *stream, struct event *event);

/* ---- random numbers ---- */

/* Counter-based (Philox 4x32-10, Salmon et al. 2011): the number at (key, counter) is a pure
 * function of both, so the same element gets the same number whatever the rank, batch or thread it
 * is computed on. */
float random_uniform(uint64_t key, uint64_t counter); /* host; in [0, 1), 24 bits */
/* A key for a stream of numbers of its own, from a seed and up to three numbers that name it. */
uint64_t random_key(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* ---- ops ---- */

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

/* Every op: queued on `s`, deterministic (the same inputs give the same bits for the same thread
 * count). Tensors given as void * are of the dtype `t`, all others fp32 unless said; gradients of
 * parameters are always fp32. `accumulate`: false writes the gradient, true adds to what is there.
 * Outputs may not overlap inputs unless said. */
struct ops {
    /* y = value everywhere. */
    void (*fill)(struct stream *s, float *y, float value, int64_t count);
    /* y = a * y. */
    void (*scale)(struct stream *s, enum dtype t, void *y, float a, int64_t count);
    /* y = y + x, in y's dtype: gradients that come in bf16 are added to fp32 ones. Either may start
     * at any element: a row of a tensor. */
    void (*add)(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
                int64_t count);
    /* y = x, in y's dtype. y may be x if both have the same. */
    void (*cast)(struct stream *s, enum dtype t_y, void *y, enum dtype t_x, const void *x,
                 int64_t count);
    /* y[i] = mean + stddev * z, z the standard normal number at (key, first + i). Numbers come in
     * groups of 32 of random_uniform's: with u = number n of a group and v = number n + 16, n < 16,
     * normal numbers n and n + 16 are sqrt(-2 log(1 - u)) times the cosine and the sine of 2 pi v
     * (Box and Muller 1958). */
    void (*normal)(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                   float mean, float stddev);
    /* y = y * min(1, max_norm / (sqrt(sum_of_squares[0]) + 1e-6)): torch.nn.utils.clip_grad_norm_
     * with a norm that stays on the device. */
    void (*clip)(struct stream *s, float *y, const double *sum_of_squares, float max_norm,
                 int64_t count);
    /* y[i] = low + (high - low) * random_uniform(key, first + i). */
    void (*uniform)(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first,
                    float low, float high);
    /* y[i] = (x[i] / 255 - mean) / stddev; x: bytes. torchvision's ToTensor and Normalize. */
    void (*normalize)(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                      float mean, float stddev);

    /* y = conv(x, w) + bias, then max(0, .) if relu (a NaN stays one, here and below). x: [B, H, W,
     * C_in]; w: [C_out, C_in, KH, KW]; bias: [C_out] or NULL. Cross-correlation, as
     * torch.nn.functional.conv2d. */
    void (*conv2d_forward)(struct stream *s, enum dtype t, void *y, const void *x, const void *w,
                           const void *bias, bool relu, const struct conv2d_shape *shape);
    /* dx of the convolution without relu (see relu_backward). */
    void (*conv2d_backward_data)(struct stream *s, enum dtype t, void *dx, const void *dy,
                                 const void *w, const struct conv2d_shape *shape);
    /* dw and dbias (dbias may be NULL). */
    void (*conv2d_backward_weights)(struct stream *s, enum dtype t, float *dw, float *dbias,
                                    const void *x, const void *dy, const struct conv2d_shape *shape,
                                    bool accumulate);

    /* dx = y > 0 ? dy : 0, y being relu's output. dx may be dy. */
    void (*relu_backward)(struct stream *s, enum dtype t, void *dx, const void *y, const void *dy,
                          int64_t count);

    /* 2x2 windows, stride 2, over [B, H, W, C]; odd last rows and columns are dropped, as
     * max_pool2d(x, 2). index: [B, H/2, W/2, C] which of the window's four (row-major) was the
     * largest; the first of equals. */
    void (*max_pool2d_forward)(struct stream *s, enum dtype t, void *y, uint8_t *index,
                               const void *x, int64_t B, int64_t H, int64_t W, int64_t C);
    void (*max_pool2d_backward)(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                                const void *dy, int64_t B, int64_t H, int64_t W, int64_t C);

    /* [B, H, W, C] -> [B, C, H, W] (torch.flatten's order), and back. */
    void (*channels_first)(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                           int64_t H, int64_t W, int64_t C);
    void (*channels_last)(struct stream *s, enum dtype t, void *y, const void *x, int64_t B,
                          int64_t H, int64_t W, int64_t C);

    /* y = x w^T + bias, then max(0, .) if relu. x: [rows, in]; w: linear_shape; bias: [out] or
     * NULL; y: [rows, out] of dtype t_y, which is t or fp32 (logits). */
    void (*linear_forward)(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                           const void *w, const void *bias, bool relu,
                           const struct linear_shape *shape);
    void (*linear_backward_data)(struct stream *s, enum dtype t, void *dx, const void *dy,
                                 const void *w, const struct linear_shape *shape, bool accumulate);
    /* dw and dbias (dbias may be NULL): fp32. */
    void (*linear_backward_weights)(struct stream *s, enum dtype t, float *dw, float *dbias,
                                    const void *x, const void *dy, const struct linear_shape *shape,
                                    bool accumulate);

    /* y[r, c] = x[r, c] / (1 - p), or 0 with probability p: dropped if random_uniform(key, g * cols
     * + c) < p, where g = first_row + r * row_stride is the row's place in the batch of all ranks:
     * the mask does not depend on the layout. Its own backward (dx from dy). y may be x. 0 <= p
     * < 1. */
    void (*dropout)(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                    int64_t cols, float p, uint64_t key, uint64_t first_row, uint64_t row_stride);

    /* y[r] = w[ids[r]]. w: [V, D]; ids: [rows], each in [0, V). */
    void (*embedding_forward)(struct stream *s, enum dtype t, void *y, const void *w,
                              const int32_t *ids, int64_t rows, int64_t V, int64_t D);
    /* dw[ids[r]] += dy[r], in an order that depends on the ids alone; without accumulate dw is
     * zeroed first. */
    void (*embedding_backward)(struct stream *s, enum dtype t, float *dw, const void *dy,
                               const int32_t *ids, int64_t rows, int64_t V, int64_t D,
                               bool accumulate);

    /* y = w * x * rstd, rstd = 1 / sqrt(mean(x^2) + eps), row by row (Zhang and Sennrich 2019);
     * with bf16, x * rstd is rounded before it is multiplied by w, as transformers does. rstd:
     * [rows], fp32, for backward. residual: NULL, or x = x + residual comes first, as add() would
     * do it; else x is only read. */
    void (*rms_norm_forward)(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                             const void *residual, const void *w, int64_t rows, int64_t D,
                             float eps);
    /* dw is summed over the rows in a fixed order. add_dx: dx is added to what is there (rounded
     * first, as add() would); else dx may be dy. */
    void (*rms_norm_backward)(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                              const void *dy, const void *x, const void *w, const float *rstd,
                              int64_t rows, int64_t D, bool accumulate);
    /* y = w * (x - mean) * rstd + bias, rstd = 1 / sqrt(var(x) + eps) (torch.nn.LayerNorm). stats:
     * [rows, 2], fp32: mean and rstd. residual and add_dx as above. */
    void (*layer_norm_forward)(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                               const void *residual, const void *w, const void *bias, int64_t rows,
                               int64_t D, float eps);
    void (*layer_norm_backward)(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                                float *dbias, const void *dy, const void *x, const void *w,
                                const float *stats, int64_t rows, int64_t D, bool accumulate);

    /* Rotary position embedding in place (Su et al. 2021), in Hugging Face's half-split form:
     * elements i and i + hd/2 of each head turn by the angle of (token, i). x: the first of `heads`
     * heads of [B * T] tokens that are `stride` elements apart; cos, sin: [T, hd / 2], fp32.
     * inverse: turns back, which is the op's backward. */
    void (*rope)(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
                 int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse);

    /* y = softmax(scale * q k^T) v, never holding T_q x T_k numbers (Dao et al. 2022). y: [B, T_q,
     * heads, hd]; lse: [B, heads, T_q], fp32: log of the sum of exponents, for backward. With bf16
     * the probabilities and their gradients may be rounded before they are multiplied. */
    void (*attention_forward)(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                              const void *k, const void *v, const struct attention_shape *shape);
    /* dq, dk, dv: strided as q, k, v; written. dbias: [T_q + T_k - 1, heads], fp32, written; NULL
     * without a bias. */
    void (*attention_backward)(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                               float *dbias, const void *dy, const void *y, const float *lse,
                               const void *q, const void *k, const void *v,
                               const struct attention_shape *shape);

    /* y[r, i] = silu(x[r, i]) * x[r, I + i]; x: [rows, 2 I], gate before up; y: [rows, I]. */
    void (*swiglu_forward)(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                           int64_t I);
    /* dx may be x. */
    void (*swiglu_backward)(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                            int64_t rows, int64_t I);
    /* The same with GELU's tanh approximation for silu (T5 v1.1's "gated-gelu"). */
    void (*geglu_forward)(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows,
                          int64_t I);
    void (*geglu_backward)(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                           int64_t rows, int64_t I);
    /* y = tanh(x). y may be x. */
    void (*tanh_forward)(struct stream *s, enum dtype t, void *y, const void *x, int64_t count);
    /* dx = dy * (1 - y^2). dx may be dy. */
    void (*tanh_backward)(struct stream *s, enum dtype t, void *dx, const void *dy, const void *y,
                          int64_t count);
    /* Gaussian error linear unit; tanh: its approximation ("gelu_new"). y may be x. */
    void (*gelu_forward)(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                         bool tanh);
    /* dx may be dy. */
    void (*gelu_backward)(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                          int64_t count, bool tanh);

    /* Nobody needs a softmax's values themselves: attention, cross_entropy and
     * nll_log_softmax_backward have theirs inside. */

    /* Cross-entropy of logits [rows, V] with targets [rows]; a target below 0 (-100) is ignored.
     * sums as nll_loss, over the rows that count. dlogits: NULL, or [rows, V], the gradient of
     * scale * loss with respect to the logits; may be logits. Exponents and their sums are fp32
     * whatever t is, so that with bf16 only the logits and their gradients themselves are rounded,
     * each once, by 2^-9 of itself at most: what PyTorch's mixed precision does, whose linear gives
     * bf16, whose loss reads it as fp32 and whose gradient is rounded on its way back. Of logits
     * that are equal in bf16 the first is the largest, as everywhere. */
    void (*cross_entropy)(struct stream *s, enum dtype t, void *dlogits, double *sums,
                          const void *logits, const int32_t *target, float scale, int64_t rows,
                          int64_t V);

    /* y = x - log(sum(exp(x))) row by row, without overflow. y, fp32, may be x if t is fp32. */
    void (*log_softmax)(struct stream *s, enum dtype t, float *y, const void *x, int64_t rows,
                        int64_t cols);
    /* sums[0] += sum over rows of -y[r, target[r]]; sums[1] += rows whose largest entry (first of
     * equals) is the target; sums[2] += rows. y: log-probabilities; target: [rows], each in [0,
     * cols); sums: double[3]. */
    void (*nll_loss)(struct stream *s, double *sums, const float *y, const int32_t *target,
                     int64_t rows, int64_t cols);
    /* Gradient of scale * nll with respect to log_softmax's input: dx = scale * (exp(y) -
     * onehot(target)). dx may be y if t is fp32. */
    void (*nll_log_softmax_backward)(struct stream *s, enum dtype t, void *dx, const float *y,
                                     const int32_t *target, float scale, int64_t rows,
                                     int64_t cols);

    /* sum[0] += sum of x[i]^2; sum: double[1]. */
    void (*sum_of_squares)(struct stream *s, double *sum, const float *x, int64_t count);

    /* Optimizer steps over a flat piece of w with its gradient g. w and its state are of dtype t;
     * state tensors have w's length and start at 0. With bf16 all that is written is rounded
     * stochastically: away from 0 with the probability of the distance, by random_uniform(key,
     * first + i): pure in the element's place and the step, so that no layout changes it. */
    /* v: average of g^2; u: average of update^2 (Zeiler 2012). */
    void (*adadelta)(struct stream *s, enum dtype t, void *w, const float *g, void *v, void *u,
                     int64_t count, const struct adadelta_step *step, uint64_t key, uint64_t first);
    /* m: momentum buffer, or NULL if momentum is 0. The first step sets m = g. */
    void (*sgd)(struct stream *s, enum dtype t, void *w, const float *g, void *m, int64_t count,
                const struct sgd_step *step, uint64_t key, uint64_t first);
    /* m, v: first and second moment. */
    void (*adam)(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
                 int64_t count, const struct adam_step *step, uint64_t key, uint64_t first);
};

/* The device's ops; lives as long as the device. */
const struct ops *device_ops(const struct device *device);

#ifdef __cplusplus
}
#endif
#endif
