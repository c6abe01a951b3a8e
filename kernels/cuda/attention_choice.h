/* Chooses between our attention kernels and cuDNN's. Pure: it knows the call, the environment
 * variable and a table of measurements.
 *
 * "auto" takes cuDNN's where the table measured it faster, else ours; a compute capability without
 * rows gets ours. `make attention-table` writes the table (attention_table.c) on a machine with a
 * GPU. It has no rows yet: cuDNN's path has run on no GPU so far. Others have measured kernels of
 * our design (FlashAttention-2 on the mma instructions of compute capability 8.0) against cuDNN:
 *  - 9.0, forward, causal or not: FlashAttention-3's authors measured on an H100, bf16, causal, T =
 *    8192: cuDNN 9.1 makes 529 TFLOP/s with heads 128 wide and 379 with 64; FlashAttention 2 makes
 *    333 and 295 (Shah et al. 2024, github.com/Dao-AILab/flash-attention).
 *  - 10.0 and 10.3, forward: FlashAttention-4's authors name cuDNN 9.13 at most 1.3 times slower
 *    than theirs on a B200, and Triton's 2.7 times (arXiv:2603.05451); kernels that use 8.0's
 *    instructions are not faster there than Triton's.
 *  - 8.0 to 8.9: Hugging Face measured cuDNN at 0.82 and 0.93 of FlashAttention 2 on an A100 and an
 *    A10G, and equal on an L40S (huggingface/transformers, issue 48163).
 *  - backward: published figures are of cuDNN's nondeterministic form. The form that ops.h can use
 *    (cudnn_attention.h) keeps scores in memory; nobody has published its speed.
 *  - Below T = 1024 attention is a small part of a step; there are no figures.
 * cuDNN's backward takes a workspace of up to 256 MiB (cudnn.c). A run's plan counts it if the
 * environment asks for cuDNN; who adds rows that choose cuDNN extends run_plan_facts.c. */
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

enum attention_direction { ATTENTION_FORWARD, ATTENTION_BACKWARD };
enum attention_mask { ATTENTION_FULL, ATTENTION_CAUSAL };

/* Measured times of both for a kind of calls: bf16, without bias, dropout and padding; cuDNN gets
 * no others. A row covers T keys and more, up to the next row of its kind. Calls with fewer keys
 * than the first row are ours. Batch and heads are those of usual models of that length. */
struct attention_measured {
    int compute_capability; /* device_compute_capability(); 0: the end of the table */
    enum attention_direction direction;
    int64_t hd;
    enum attention_mask mask;
    int64_t T;
    double ours_ms, cudnn_ms; /* cuDNN's must be shorter by more than noise */
};
extern const struct attention_measured attention_table[];

/* The inputs of the decision. */
struct attention_choice {
    enum attention_mode mode;
    int compute_capability;
    const struct attention_measured *table; /* outlives it */
};

/* Whether the table has rows for the GPU. */
bool attention_is_measured(const struct attention_choice *choice);

/* Whether to try cuDNN. False for calls that it never gets: another dtype than bf16, a bias,
 * dropout, padding, heads that are neither 64 nor 128 wide, strides that are no multiples of 16
 * bytes. */
bool attention_tries_cudnn(const struct attention_choice *choice,
                           enum attention_direction direction, enum dtype t,
                           const struct attention_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
