#include "kernels/cuda/slow_path.h"

#include "base/contract.h"
#include "base/log.h"

#include <stdatomic.h>

enum { WIDE_LOAD = 16 }; /* bytes: the least that fast kernels load at once */

/* Multiplications, and scores, below which nobody waits. */
static const int64_t least_product = 1 << 24, least_scores = 1 << 20;

static bool is_first(atomic_bool *told)
{
    return !atomic_exchange(told, true);
}

static bool is_large(const struct matmul *p)
{
    return p->m * p->n * p->k >= least_product;
}

void slow_path_no_algorithm(enum dtype t, const struct matmul *p)
{
    static atomic_bool told;
    if (is_large(p) && is_first(&told))
        log_warning("matrix products: cuBLASLt has no algorithm for one in %s of %lld x %lld x "
                    "%lld (rows %lld, %lld and %lld apart): a kernel of our own does it, without "
                    "matrix units. Sizes of the model that are multiples of 8 have fast ones",
                    dtype_name(t), (long long)p->m, (long long)p->n, (long long)p->k,
                    (long long)p->a_stride, (long long)p->b_stride, (long long)p->c_stride);
}

void slow_path_product(enum dtype t, const struct matmul *p, uint32_t alignment)
{
    static atomic_bool told;
    int64_t in = (int64_t)dtype_bytes(t), out = (int64_t)dtype_bytes(p->t_c);
    bool is_wide = alignment >= WIDE_LOAD && p->a_stride * in % WIDE_LOAD == 0 &&
                   p->b_stride * in % WIDE_LOAD == 0 && p->c_stride * out % WIDE_LOAD == 0;
    if (t == DTYPE_BF16 && !is_wide && is_large(p) && is_first(&told))
        log_warning("matrix products: rows of %lld, %lld or %lld elements do not begin at "
                    "multiples of 16 bytes, for which cuBLASLt has slower kernels. Sizes of the "
                    "model that are multiples of 8 have fast ones",
                    (long long)p->a_stride, (long long)p->b_stride, (long long)p->c_stride);
}

void slow_path_attention(enum dtype t, const struct attention_shape *shape)
{
    static atomic_bool told;
    bool is_wide = shape->hd == 64 || shape->hd == 128;
    if (t == DTYPE_BF16 && shape->B * shape->heads * shape->T_q * shape->T_k >= least_scores &&
        is_first(&told))
        log_warning("attention: heads %lld wide%s have no kernel on matrix units: it is done in "
                    "fp32, several times slower than heads 64 or 128 wide",
                    (long long)shape->hd, is_wide ? ", whose rows are not aligned," : "");
}

void slow_path_not_hopper(enum dtype t, const struct attention_shape *shape)
{
    static atomic_bool told;
    if (is_first(&told))
        log_warning("attention: " ENV_ATTENTION "=hopper is for bf16, heads 64 or 128 wide, rows "
                    "that are a multiple of that apart, no bias, dropout or padding: attention "
                    "in %s of heads %lld wide is done by our other kernels",
                    dtype_name(t), (long long)shape->hd);
}
