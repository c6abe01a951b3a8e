/* A plan run on a stream: where its scratch and the tensors of each part of the batch lie. Knows
 * neither when a plan is made nor what becomes of its result. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_RUN_H
#define SHOAL_KERNELS_CUDA_CUDNN_RUN_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cudnn_plans.h"

/* Whether each tensor in device memory begins where the graphs say: at a multiple of
 * CUDNN_ALIGNMENT. pointers: of each tensor by its name (enum cudnn_tensor); NULL: the graph has
 * none of it. */
bool cudnn_run_can_take(const void *const pointers[CUDNN_TENSORS]);

/* Bytes of a call's scratch. */
size_t cudnn_run_scratch_bytes(const struct cudnn_plan *plan, const struct attention_shape *shape,
                               bool backward);

/* Queues the plan for each part of the batch. pointers: the whole batch's, without those of numbers
 * and scratch; are changed. Ops that are captured end here: an engine may queue what cannot be
 * given new arguments. Returns a cudnnStatus_t: 0, or why it was not queued. */
int cudnn_run(const struct cudnn_api *api, cudnn_handle handle, struct stream *s,
              const struct cudnn_plan *plan, const struct attention_shape *shape, bool backward,
              void *scratch, const void *pointers[CUDNN_TENSORS]);
#endif
