/* The CUDA backend's ops: one file each. Only files of kernels/cuda include this. */
#ifndef SHOAL_KERNELS_CUDA_OPS_H
#define SHOAL_KERNELS_CUDA_OPS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ops cuda_ops;

/* The ops by their names in kernels/ops.h: cuda_fill(), .. */
#define CUDA_OP(op) op_##op cuda_##op;
OPS(CUDA_OP)
#undef CUDA_OP

#ifdef __cplusplus
}
#endif
#endif
