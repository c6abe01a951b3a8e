/* cuDNN on a GPU: loaded at the first call that wants it. Plans are made once per shape and cached;
 * they run on the op's stream with the stream's scratch. If the library or a plan is missing, or a
 * call fails, one line is logged per direction, and our own kernels do the work. */
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

/* Queues the op of ops.h if attention_choice.h gives it to cuDNN and cuDNN can do it. False:
 * nothing was queued. */
bool cudnn_attention_forward(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                             const void *k, const void *v, const struct attention_shape *shape);
bool cudnn_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                              const void *dy, const void *y, const float *lse, const void *q,
                              const void *k, const void *v, const struct attention_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
