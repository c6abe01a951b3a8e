/* Matrix products of either dtype, for linear layers. fp32 goes to oneDNN's sgemm; bf16 to its
 * matmul primitives where the machine multiplies bf16 (AVX-512 BF16, AMX), else through fp32. */
#ifndef SHOAL_KERNELS_CPU_PRODUCT_H
#define SHOAL_KERNELS_CPU_PRODUCT_H

#include "kernels/cpu/cpu.h"
#include "kernels/product.h"

/* From inside a closure; on all threads of the stream. */
void product_run(struct stream *s, enum dtype t, const struct product *p, const void *a,
                 const void *b, const void *bias, void *c);

/* What product_run keeps from call to call: oneDNN's compiled products, by shape. One a stream;
 * only its worker uses it. */
struct product_cache;
struct product_cache *product_cache_open(void);
void product_cache_close(struct product_cache *cache); /* NULL-safe */

/* The cache of the stream that runs the closure (stream.c). */
struct product_cache *cpu_product_cache(struct stream *s);

/* c in bf16's way; false if this machine has none. (product_bf16.c) */
bool product_native_bf16(struct stream *s, const struct product *p, const void *a, const void *b,
                         const void *bias, void *c);

#endif
