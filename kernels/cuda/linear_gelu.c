/* A linear layer beside a GELU: cuBLASLt makes it in the product's epilogue, from numbers that were
 * not rounded yet. Its GELU is tanh's approximation. Else, and below DEVICE_FUSED_GELU_CAPABILITY,
 * in two steps. */
#include "kernels/cuda/blas.h"
#include "kernels/cuda/ops.h"

#include <assert.h>

static bool may_fuse(const struct stream *s, int64_t width)
{
    return s->device->compute_capability >= DEVICE_FUSED_GELU_CAPABILITY &&
           width % BLAS_AUX_STRIDE == 0;
}

void cuda_linear_gelu_forward(struct stream *s, enum dtype t, void *y, void *z, const void *x,
                              const void *w, const void *bias, const struct linear_shape *shape)
{
    assert(shape->y_stride == shape->out);
    const struct matmul p = matmul_forward(shape, t);
    const struct blas_finish finish = {BLAS_BIAS_GELU, bias, z, shape->out};
    if (shape->nondeterministic && bias && shape->rows > 0 && may_fuse(s, shape->out) &&
        blas_matmul_finished(s, t, &p, x, w, &finish, y))
        return;
    cuda_linear_forward(s, t, t, z, x, w, bias, false, shape);
    cuda_gelu_forward(s, t, y, z, shape->rows * shape->out, true);
}

void cuda_linear_gelu_backward_data(struct stream *s, enum dtype t, void *dz, const void *dy,
                                    const void *w, const void *z, const struct linear_shape *shape)
{
    const struct matmul p = matmul_backward_data(shape, t, false);
    const struct blas_finish finish = {BLAS_GELU_GRADIENT, NULL, z, shape->in};
    if (shape->rows > 0 && may_fuse(s, shape->in) &&
        blas_matmul_finished(s, t, &p, dy, w, &finish, dz))
        return;
    cuda_linear_backward_data(s, t, dz, dy, w, shape, false);
    cuda_gelu_backward(s, t, dz, dz, z, shape->rows * shape->in, true);
}
