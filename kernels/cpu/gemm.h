/* Matrix products, by oneDNN. */
#ifndef SHOAL_KERNELS_CPU_GEMM_H
#define SHOAL_KERNELS_CPU_GEMM_H

#include <assert.h>
#include <dnnl.h>
#include <stdint.h>

/* c = op(a) op(b) + beta * c; op(a): [m, k], op(b): [k, n], op is the transpose if trans is 'T'.
 * Row-major; rows of a, b and c are a_stride, b_stride and c_stride apart. On all threads of the
 * stream, or on one from inside a parallel region. */
static inline void cpu_gemm_strided(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                    const float *a, int64_t a_stride, const float *b,
                                    int64_t b_stride, float beta, float *c, int64_t c_stride)
{
    dnnl_status_t status =
        dnnl_sgemm(trans_a, trans_b, m, n, k, 1.0f, a, a_stride, b, b_stride, beta, c, c_stride);
    assert(status == dnnl_success); /* it can only dislike its arguments, or be out of memory */
    (void)status;
}

/* The same of a dense a and b. */
static inline void cpu_gemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                            const float *a, const float *b, float beta, float *c, int64_t c_stride)
{
    cpu_gemm_strided(trans_a, trans_b, m, n, k, a, trans_a == 'N' ? k : m, b,
                     trans_b == 'N' ? n : k, beta, c, c_stride);
}

#endif
