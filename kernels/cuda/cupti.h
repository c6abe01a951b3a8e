/* A GPU's kernels and copies as CUPTI records them (libcupti.so, from the CUDA Toolkit or PyTorch's
 * wheels). CUPTI is one per process, so one device at a time. */
#ifndef SHOAL_KERNELS_CUDA_CUPTI_H
#define SHOAL_KERNELS_CUDA_CUPTI_H

#include "base/library.h"
#include "kernels/trace_log.h"

/* The newest CUPTI that is there. */
void cupti_describe(struct library_facts *ret);

/* The namesakes in struct backend. Errors: there is no CUPTI, no permission to use it, or another
 * tool or device uses it. */
int cuda_trace_begin(struct device *device, struct error *ret_why);
void cuda_trace_end(struct device *device, trace_add *add, void *ctx);
#endif
