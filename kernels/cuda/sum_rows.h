/* Sums over the rows of a tensor: the gradients of biases and of norms' weights. */
#ifndef SHOAL_KERNELS_CUDA_SUM_ROWS_H
#define SHOAL_KERNELS_CUDA_SUM_ROWS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* sums: [cols] (+)= the sum of the rows of x: [rows, cols], `stride` elements apart, in an order
 * that depends on the shape alone. x may lie in cuda_scratch() if rows is at most SUM_ROWS_AT_ONCE:
 * it asks for none then. */
enum { SUM_ROWS_AT_ONCE = 1024 };
void cuda_sum_rows(struct stream *s, float *sums, enum dtype t, const void *x, int64_t rows,
                   int64_t cols, int64_t stride, bool accumulate);

#ifdef __cplusplus
}
#endif
#endif
