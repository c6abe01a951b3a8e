/* The CUDA backend's table of ops. */
#include "kernels/cuda/ops.h"

const struct ops cuda_ops = {
    .fill = cuda_fill,
    .scale = cuda_scale,
    .add = cuda_add,
    .cast = cuda_cast,
};
