/* Slow ways that work are told: a warning once a process for each kind, so that none is taken in
 * silence. What is too small to matter is not told. */
#ifndef SHOAL_KERNELS_CUDA_SLOW_PATH_H
#define SHOAL_KERNELS_CUDA_SLOW_PATH_H

#include "kernels/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cuBLASLt has no algorithm for the product. */
void slow_path_no_algorithm(enum dtype t, const struct matmul *p);

/* A product with operands at multiples of `alignment` bytes: told if its rows, in bf16, do not all
 * begin at multiples of 16 bytes. */
void slow_path_product(enum dtype t, const struct matmul *p, uint32_t alignment);

/* Attention that the kernels for compute capability 9.0 were asked for and cannot do. */
void slow_path_not_hopper(enum dtype t, const struct attention_shape *shape);

/* Attention without matrix units: told if it is bf16's. */
void slow_path_attention(enum dtype t, const struct attention_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
