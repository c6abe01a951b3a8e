/* What the tensor memory accelerator of compute capability 9.0 is told of a tensor: 128 bytes that
 * the driver writes. They say where rows of heads lie and how large the box is that a copy
 * brings. */
#ifndef SHOAL_KERNELS_CUDA_TENSOR_MAP_H
#define SHOAL_KERNELS_CUDA_TENSOR_MAP_H

#include <cuda_runtime.h>
#include <stdalign.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's CUtensorMap, aligned as cuda.h of CUDA 13 has it. */
struct tensor_map {
    alignas(128) unsigned char opaque[128];
};

/* A map of x, [B, T, heads, hd] of bf16: token (b, t) begins at (b * T + t) * stride. A box is 64
 * columns of `rows` (<= 256) tokens of one head, with the swizzle of 128 bytes. x is 16-byte
 * aligned, hd a multiple of 8, stride one of hd. Fails with a driver that knows no such maps. */
cudaError_t tensor_map_of_heads(struct tensor_map *ret_map, const void *x, int64_t B, int64_t T,
                                int64_t heads, int64_t hd, int64_t stride, int rows);

#ifdef __cplusplus
}
#endif
#endif
