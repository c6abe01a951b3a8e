/* Ranges for NVIDIA's tools (Nsight Systems): pushed and popped on the thread that queues, in the
 * domain "shoal". The namesakes in trace.h. */
#ifndef SHOAL_KERNELS_CUDA_RANGE_H
#define SHOAL_KERNELS_CUDA_RANGE_H

#include "kernels/trace.h"

void cuda_stream_range_begin(struct stream *stream, const struct stream_range *range);
void cuda_stream_range_end(struct stream *stream);
#endif
