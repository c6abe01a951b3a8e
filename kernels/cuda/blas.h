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

/* What a product does with each sum before it is stored: cuBLASLt's epilogues. */
enum blas_epilogue {
    BLAS_PLAIN,         /* nothing */
    BLAS_BIAS,          /* adds bias: [n] */
    BLAS_BIAS_GELU,     /* adds bias, stores that in aux, and its GELU (tanh's form) in c */
    BLAS_GELU_GRADIENT, /* times that GELU's slope at aux */
    /* Beside the product, of a gradient of weights. In which order is cuBLASLt's choice: */
    BLAS_SUMS_OF_A, /* bias[i] = the sum of op(a)'s row i; fp32, as c */
    BLAS_SUMS_OF_B, /* bias[j] = the sum of op(b)'s column j; fp32, as c */
};
struct blas_finish {
    enum blas_epilogue epilogue;
    const void *bias; /* of c's dtype; BLAS_SUMS_: is written */
    const void *aux;  /* [m, n], of c's dtype; BLAS_BIAS_GELU: is written */
    int64_t aux_stride;
};
/* A multiple of this: rows of aux begin so many elements apart. */
enum { BLAS_AUX_STRIDE = 8 };

/* blas_matmul() below with an epilogue; one that is not plain does not accumulate. False: the
 * caller does it in steps. */
bool blas_matmul_finished(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                          const void *b, const struct blas_finish *finish, void *c);

/* Queues c = op(a) op(b) ..., m, n and k at least 1. bias is of c's dtype. Returns false, with
 * nothing queued, if cuBLASLt has no algorithm for it. A failure of the library fails the
 * stream. */
bool blas_matmul(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                 const void *b, const void *bias, void *c);

/* Likewise in fp8, of codes, with what undoes their scales; bias: NULL, or bf16 as c is. False on
 * GPUs that have no fp8, too. */
struct blas_fp8 {
    const uint8_t *a, *b;
    const float *a_inverse, *b_inverse; /* on the device */
    const void *bias;
    void *c;
};
bool blas_matmul_fp8(struct stream *s, const struct fp8_matmul *p, const struct blas_fp8 *o);

/* That of the stream's device (stream.c). */
struct blas *cuda_blas(struct stream *s);

#ifdef __cplusplus
}
#endif
#endif
