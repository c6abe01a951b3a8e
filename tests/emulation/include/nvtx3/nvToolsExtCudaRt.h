/* NVTX as tests emulate it: names of streams, by which a wait can be skipped. */
#ifndef SHOAL_TESTS_EMULATION_INCLUDE_NVTX3_NVTOOLSEXTCUDART_H
#define SHOAL_TESTS_EMULATION_INCLUDE_NVTX3_NVTOOLSEXTCUDART_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif
void nvtxNameCudaStreamA(cudaStream_t stream, const char *name);
#ifdef __cplusplus
}
#endif
#endif
