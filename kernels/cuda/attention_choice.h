/* Whose attention a call gets: our kernels' or cuDNN's. Pure: the call and the environment
 * variable.
 *
 * Auto is ours everywhere, until cuDNN's path has passed `make check-gpu` on a GPU: none has run it
 * yet, and a fall-back sees calls that fail, not numbers that are wrong. Then this is the place for
 * a table of the architectures, widths, lengths and directions in which cuDNN is faster, filled by
 * tests/bench/attention_bench.c, which measures both. Where others have measured kernels built as
 * ours are (flash attention 2 on the matrix instructions of compute capability 8.0) against it:
 *  - 9.0, forward, causal or not: FlashAttention-3's authors measured on an H100, bf16, causal, T =
 *    8192: cuDNN 9.1 makes 529 TFLOP/s with heads 128 wide and 379 with 64; FlashAttention 2 makes
 *    333 and 295 (Shah et al. 2024, github.com/Dao-AILab/flash-attention).
 *  - 10.0 and 10.3, forward: FlashAttention-4's authors name cuDNN 9.13 at most 1.3 times slower
 *    than theirs on a B200, and Triton's 2.7 times (arXiv:2603.05451); kernels that use 8.0's
 *    instructions are not faster there than Triton's.
 *  - 8.0 to 8.9: Hugging Face measured cuDNN at 0.82 and 0.93 of FlashAttention 2 on an A100 and an
 *    A10G, and equal on an L40S (huggingface/transformers, issue 48163).
 *  - backward: those figures are of cuDNN's other form, in which two runs differ; the one that
 *    ops.h can take (cudnn_attention.h) holds scores in memory, and nobody has published it.
 *  - Below T = 1024 attention is a small part of a step, and no figure is of there. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_CHOICE_H
#define SHOAL_KERNELS_CUDA_ATTENTION_CHOICE_H

#include "base/error.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_mode { ATTENTION_AUTO, ATTENTION_OURS, ATTENTION_CUDNN };

/* SHOAL_ATTENTION's value, "auto", "ours" or "cudnn"; NULL or empty: auto. Errors: ERR_CONFIG. */
int attention_mode_read(const char *text, enum attention_mode *ret_mode, struct error *err);

/* Whether cuDNN is to be asked. False for all that it is never asked: another dtype than bf16, a
 * bias, dropout, padding, heads that are neither 64 nor 128 wide, strides that are no multiples of
 * 16 bytes. */
bool attention_asks_cudnn(enum attention_mode mode, enum dtype t,
                          const struct attention_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
