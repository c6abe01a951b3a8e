/* A linear layer as matrix products: which operands are transposed, and how far apart their rows
 * lie. Pure; backends do the products. */
#ifndef SHOAL_KERNELS_MATMUL_H
#define SHOAL_KERNELS_MATMUL_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c = op(a) op(b) + bias, or c + op(a) op(b) if accumulate; op(a): [m, k], op(b): [k, n], op is the
 * transpose if trans. Row-major, rows `stride` elements apart. Summed in fp32. bias: [n] or NULL;
 * not with accumulate. */
struct matmul {
    bool trans_a, trans_b;
    int64_t m, n, k;
    int64_t a_stride, b_stride, c_stride;
    enum dtype t_c; /* of c; a, b and bias are of the product's own dtype */
    bool accumulate;
};

/* Whether the two are the same work: the key that plans are cached by. */
bool matmul_equal(const struct matmul *p, const struct matmul *q);

/* y = x op(w): a is x, b is w. */
struct matmul matmul_forward(const struct linear_shape *shape, enum dtype t_y);

/* dx = dy op(w): a is dy, b is w. t: the layer's dtype. */
struct matmul matmul_backward_data(const struct linear_shape *shape, enum dtype t, bool accumulate);

/* dw, fp32: a is dy and b is x, or a is x and b is dy if shape->in_out. */
struct matmul matmul_backward_weights(const struct linear_shape *shape, bool accumulate);

/* That of p's decoded operands. */
struct matmul matmul_of_fp8(const struct fp8_matmul *p);

#ifdef __cplusplus
}
#endif
#endif
