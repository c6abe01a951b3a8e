/* Matrix products, by oneDNN. */
#ifndef SHOAL_KERNELS_CPU_GEMM_H
#define SHOAL_KERNELS_CPU_GEMM_H

#include <assert.h>
#include <dnnl.h>
#include <stdint.h>

/* c = op(a) op(b) + beta * c; op(a): [m, k], op(b): [k, n], op is the transpose if trans is 'T'.
 * Row-major; a and b are dense, c's rows are c_stride apart. On all threads of the stream, or on
 * one from inside a parallel region. */
static inline void cpu_gemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                            const float *a, const float *b, float beta, float *c, int64_t c_stride)
{
    dnnl_status_t status = dnnl_sgemm(trans_a, trans_b, m, n, k, 1.0f, a, trans_a == 'N' ? k : m, b,
                                      trans_b == 'N' ? n : k, beta, c, c_stride);
    assert(status == dnnl_success); /* it can only dislike its arguments, or be out of memory */
    (void)status;
}

#endif
