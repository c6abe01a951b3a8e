/* Attention in bf16 with AMX: how forward and backward lay out rows as factors of products. Heads
 * are padded with zeros to AMX_STEP elements, blocks to their full size, so that no product has an
 * edge. */
#ifndef SHOAL_KERNELS_CPU_ATTENTION_AMX_H
#define SHOAL_KERNELS_CPU_ATTENTION_AMX_H

#include "kernels/cpu/amx.h"
#include "kernels/cpu/attention.h"

/* Whether this machine has AMX and Linux lets the process use it: oneDNN asks for the permission
 * (arch_prctl). */
bool attention_amx_available(void);

/* As attention's forward and backward, of a struct attention_args in bf16. */
void attention_amx_forward(const struct attention_args *a);
void attention_amx_backward(const struct attention_args *a);

static inline int64_t attention_blocks(int64_t T)
{
    return (T + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
}

#ifdef __x86_64__

static inline int64_t attention_padded(int64_t hd)
{
    return (hd + AMX_STEP - 1) / AMX_STEP * AMX_STEP;
}

/* rows: [blocks of T, padded hd] = a head's T rows of x, from element `first` on. */
void attention_amx_rows(bf16 *rows, const bf16 *x, int64_t first, int64_t stride, int64_t T,
                        int64_t hd);

/* The other layouts are made from such rows, block by block. */
/* transposed: [padded, ATTENTION_BLOCK] a block: a first factor. */
void attention_amx_transpose(bf16 *transposed, const bf16 *rows, int64_t blocks, int64_t padded);
/* transposed: [padded / 2, ATTENTION_BLOCK] pairs a block: the rows as columns of a
 * second factor. */
void attention_amx_transpose_pairs(uint32_t *transposed, const bf16 *rows, int64_t blocks,
                                   int64_t padded);
/* pairs: [ATTENTION_BLOCK / 2, padded] a block: the rows as those of a second factor. */
void attention_amx_pair(uint32_t *pairs, const bf16 *rows, int64_t blocks, int64_t padded);

#endif
#endif
