#include "kernels/matmul.h"

#include <assert.h>

bool matmul_equal(const struct matmul *p, const struct matmul *q)
{
    return q->trans_a == p->trans_a && q->trans_b == p->trans_b && q->m == p->m && q->n == p->n &&
           q->k == p->k && q->a_stride == p->a_stride && q->b_stride == p->b_stride &&
           q->c_stride == p->c_stride && q->t_c == p->t_c && q->accumulate == p->accumulate;
}

static void check(const struct linear_shape *z)
{
    assert(z->rows >= 0 && z->in >= 1 && z->out >= 1 && z->y_stride >= z->out);
}

struct matmul matmul_forward(const struct linear_shape *z, enum dtype t_y)
{
    check(z);
    return (struct matmul){.trans_b = !z->in_out,
                           .m = z->rows,
                           .n = z->out,
                           .k = z->in,
                           .a_stride = z->in,
                           .b_stride = z->in_out ? z->out : z->in,
                           .c_stride = z->y_stride,
                           .t_c = t_y};
}

struct matmul matmul_backward_data(const struct linear_shape *z, enum dtype t, bool accumulate)
{
    check(z);
    return (struct matmul){.trans_b = z->in_out,
                           .m = z->rows,
                           .n = z->in,
                           .k = z->out,
                           .a_stride = z->y_stride,
                           .b_stride = z->in_out ? z->out : z->in,
                           .c_stride = z->in,
                           .t_c = t,
                           .accumulate = accumulate};
}

struct matmul matmul_backward_weights(const struct linear_shape *z, bool accumulate)
{
    check(z);
    return (struct matmul){.trans_a = true,
                           .m = z->in_out ? z->in : z->out,
                           .n = z->in_out ? z->out : z->in,
                           .k = z->rows,
                           .a_stride = z->in_out ? z->in : z->y_stride,
                           .b_stride = z->in_out ? z->y_stride : z->in,
                           .c_stride = z->in_out ? z->out : z->in,
                           .t_c = DTYPE_F32,
                           .accumulate = accumulate};
}

struct matmul matmul_of_fp8(const struct fp8_matmul *p)
{
    return (struct matmul){.trans_b = true,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .a_stride = p->k,
                           .b_stride = p->k,
                           .c_stride = p->c_stride,
                           .t_c = p->t_c,
                           .accumulate = p->accumulate};
}
