/* The CUDA backend's table of ops. */
#include "kernels/cuda/ops.h"

const struct ops cuda_ops = {
#define CUDA_OP(op) .op = cuda_##op,
    OPS(CUDA_OP)
#undef CUDA_OP
};
