/* cuDNN on a GPU: loaded at the first call that wants it. Plans are made once per shape and cached;
 * they run on the op's stream with the stream's scratch. If the library or a plan is missing, a
 * call fails or a result is wrong, one line is logged per direction (enum attention_direction), and
 * our own kernels do the work. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_H
#define SHOAL_KERNELS_CUDA_CUDNN_H

#include "kernels/attention_choice.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cudnn;

/* One a device, for the one thread that queues ops on its streams. index: CUDA's number of it;
 * compute_capability: device_compute_capability(). */
struct cudnn *cudnn_open(int index, int compute_capability, enum attention_mode mode);
void cudnn_close(struct cudnn *cudnn); /* NULL-safe; what is queued is done */

/* That of the stream's device (stream.c). */
struct cudnn *cuda_cudnn(struct stream *s);

/* By what it is chosen who does attention on the stream's device. */
const struct attention_choice *cuda_attention_choice(struct stream *s);

enum cudnn_result {
    CUDNN_LEFT,   /* nothing was queued */
    CUDNN_QUEUED, /* the op was */
    CUDNN_FIRST,  /* the op was, by a plan of which nobody has seen a result: the caller compares it
                     with ours (attention_check.h), and says what came of it */
};

/* Queues the op of ops.h if attention_choice.h gives it to cuDNN and cuDNN can do it: the whole
 * batch at once, or as many sequences at a time as the workspace is enough for. */
enum cudnn_result cudnn_attention_forward(struct stream *s, enum dtype t, void *y, float *lse,
                                          const void *q, const void *k, const void *v,
                                          const struct attention_shape *shape);
enum cudnn_result cudnn_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk,
                                           void *dv, const void *dy, const void *y,
                                           const float *lse, const void *q, const void *k,
                                           const void *v, const struct attention_shape *shape);

/* The shape's plan, in that direction, is compared from now on, and its first result is kept. */
void cudnn_attention_compared(struct stream *s, bool backward, const struct attention_shape *shape);
/* cuDNN gets nothing of that direction any more, which is told: forward, backward, or backward of
 * shapes that may be nondeterministic, by the shape. what: is wrong with a result. */
void cudnn_attention_refuse(struct stream *s, bool backward, const struct attention_shape *shape,
                            const char *what);

#ifdef __cplusplus
}
#endif
#endif
