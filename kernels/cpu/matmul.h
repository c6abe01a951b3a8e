/* Matrix products of either dtype, for linear layers. fp32 goes to oneDNN's sgemm; bf16 to its
 * matmul primitives where the machine multiplies bf16 (AVX-512 BF16, AMX), else through fp32. */
#ifndef SHOAL_KERNELS_CPU_MATMUL_H
#define SHOAL_KERNELS_CPU_MATMUL_H

#include "kernels/cpu/cpu.h"
#include "kernels/matmul.h"

/* From inside a closure; on all threads of the stream. */
void matmul_run(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                const void *b, const void *bias, void *c);

/* What matmul_run keeps from call to call: oneDNN's compiled products, by shape. One a stream;
 * only its worker uses it. */
struct matmul_cache;
struct matmul_cache *matmul_cache_open(void);
void matmul_cache_close(struct matmul_cache *cache); /* NULL-safe */

/* The cache of the stream that runs the closure (stream.c). */
struct matmul_cache *cpu_matmul_cache(struct stream *s);

/* c in bf16's way; false if this machine has none. (product_bf16.c) */
bool matmul_native_bf16(struct stream *s, const struct matmul *p, const void *a, const void *b,
                        const void *bias, void *c);

#endif
