/* What a GPU's kernels and copies did, by CUPTI, NVIDIA's library for that (libcupti.so, of the
 * CUDA Toolkit or PyTorch's wheels). It serves a process, so one device at a time. */
#ifndef SHOAL_KERNELS_CUDA_CUPTI_H
#define SHOAL_KERNELS_CUDA_CUPTI_H

#include "kernels/trace_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The namesakes in struct backend. Errors: no CUPTI, no right to use it, another tool or device
 * that does. */
int cuda_trace_begin(struct device *device, struct error *ret_why);
void cuda_trace_end(struct device *device, trace_add *add, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
