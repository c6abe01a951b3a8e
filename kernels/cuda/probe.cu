/* Whether this build runs on the GPU at hand. */
#include "kernels/cuda/stream.h"

static __global__ void nothing(int *unused)
{
    (void)unused;
}

cudaError_t cuda_probe(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, nothing);
}
