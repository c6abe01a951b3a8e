/* A linear layer beside a GELU, in two steps: its product is oneDNN's, or ours. */
#include "kernels/cpu/cpu.h"

#include <assert.h>

void cpu_linear_gelu_forward(struct stream *s, enum dtype t, void *y, void *z, const void *x,
                             const void *w, const void *bias, const struct linear_shape *shape)
{
    assert(shape->y_stride == shape->out);
    cpu_linear_forward(s, t, t, z, x, w, bias, false, shape);
    cpu_gelu_forward(s, t, y, z, shape->rows * shape->out, true);
}

void cpu_linear_gelu_backward_data(struct stream *s, enum dtype t, void *dz, const void *dy,
                                   const void *w, const void *z, const struct linear_shape *shape)
{
    cpu_linear_backward_data(s, t, dz, dy, w, shape, false);
    cpu_gelu_backward(s, t, dz, dz, z, shape->rows * shape->in, true);
}
