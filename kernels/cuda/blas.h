/* Matrix products by cuBLASLt. The descriptors and the algorithm of each product are found once and
 * cached: a training step asks for the same few. Products are deterministic: algorithms that add
 * with atomics are excluded, and a stream has one workspace. Which algorithm is taken follows from
 * the product, but where the device tunes them (device_tune_products): then it follows from times.
 * fp32 is multiplied as fp32, not as TF32. */
#ifndef SHOAL_KERNELS_CUDA_BLAS_H
#define SHOAL_KERNELS_CUDA_BLAS_H

#include "base/library.h"
#include "kernels/cuda/cuda.h"
#include "kernels/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

struct blas;

/* The cuBLASLt that blas_open() would take. */
void blas_describe(struct library_facts *ret);

/* One per device, for the one thread that queues products on its streams. Errors: library_open()'s;
 * ERR_UNSUPPORTED if cuBLASLt is too old or does not support the GPU. */
int blas_open(struct blas **ret_blas, struct error *err);
void blas_close(struct blas *blas); /* NULL-safe; what is queued is done */

/* Queues c = op(a) op(b) ..., m, n and k at least 1. bias is of c's dtype. Returns false, with
 * nothing queued, if cuBLASLt has no algorithm for it. A failure of the library fails the
 * stream. */
bool blas_matmul(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                 const void *b, const void *bias, void *c);

/* That of the stream's device (stream.c). */
struct blas *cuda_blas(struct stream *s);

#ifdef __cplusplus
}
#endif
#endif
