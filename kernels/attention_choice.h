/* Chooses between our attention kernels and cuDNN's. Pure: it knows the call, the environment
 * variable, a table of measurements and one of what others have published. A run and its plan ask
 * here, so that they agree.
 *
 * "auto" takes cuDNN's where the table measured it faster, else ours. `make attention-table` writes
 * the table (attention_table.c) on a machine with a GPU. It has no rows yet: cuDNN's path has run
 * on no GPU so far. Until then published figures decide (attention_published.c), of kernels of our
 * design: FlashAttention 2, on the mma instructions of compute capability 8.0. They are of compute
 * capability 9.0. Of others:
 *  - 10.0 and 10.3, forward: FlashAttention-4's authors name cuDNN 9.13 at most 1.3 times slower
 *    than theirs on a B200, and Triton's 2.7 times (arXiv:2603.05451); kernels that use 8.0's
 *    instructions are not faster there than Triton's. These are no figures of the two.
 *  - 8.0 to 8.9: Hugging Face measured cuDNN at 0.82 and 0.93 of FlashAttention 2 on an A100 and an
 *    A10G, and equal on an L40S (huggingface/transformers, issue 48163): ours do it.
 *  - backward with equal bits: that form of cuDNN's (cudnn_attention.h) keeps scores in memory;
 *    nobody has published its speed.
 *  - Below T = 1024 attention is a small part of a step; there are no figures.
 *
 * Ours for 9.0 (attention_hopper*.cu) have run on no GPU either: they are asked for, never
 * chosen. */
#ifndef SHOAL_KERNELS_ATTENTION_CHOICE_H
#define SHOAL_KERNELS_ATTENTION_CHOICE_H

#include "base/error.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_mode { ATTENTION_AUTO, ATTENTION_OURS, ATTENTION_CUDNN, ATTENTION_HOPPER };

/* SHOAL_ATTENTION's value, "auto", "ours", "cudnn" or "hopper"; NULL or empty: auto. Errors:
 * ERR_CONFIG. */
int attention_mode_read(const char *text, enum attention_mode *ret_mode, struct error *err);

/* Errors: ERR_CONFIG if GPUs of the compute capability cannot do what the mode asks for; `gpu` says
 * which GPU it is of. */
int attention_mode_check(enum attention_mode mode, const char *gpu, int compute_capability,
                         struct error *err);

/* The last one is in tables only: a backward whose shape may be nondeterministic. */
enum attention_direction {
    ATTENTION_FORWARD,
    ATTENTION_BACKWARD,
    ATTENTION_BACKWARD_NONDETERMINISTIC,
};
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

/* What others have measured: of a kernel of our design, and of cuDNN's. It stands for the kinds of
 * calls that the other table has no row of. */
struct attention_published {
    struct attention_measured row; /* its times: those of 1 TFLOP */
    const char *source;            /* whose figures, of which versions and GPU */
};
extern const struct attention_published attention_published[];

/* The inputs of the decision. */
struct attention_choice {
    enum attention_mode mode;
    int compute_capability;
    const struct attention_measured *table; /* both outlive it */
    const struct attention_published *published;
};

/* By the tables of this build. */
static inline struct attention_choice attention_choice_here(enum attention_mode mode,
                                                            int compute_capability)
{
    struct attention_choice choice = {mode, compute_capability, attention_table,
                                      attention_published};
    return choice;
}

/* Who does a call, and why cuDNN. */
enum attention_doer {
    ATTENTION_BY_US,
    ATTENTION_BY_HOPPER,       /* ours for compute capability 9.0: asked by the environment */
    ATTENTION_CUDNN_ASKED,     /* by the environment */
    ATTENTION_CUDNN_MEASURED,  /* the table says that it is faster */
    ATTENTION_CUDNN_PUBLISHED, /* others say so */
};

static inline bool attention_is_cudnns(enum attention_doer doer)
{
    return doer != ATTENTION_BY_US && doer != ATTENTION_BY_HOPPER;
}

/* Never cuDNN for calls that it never gets: another dtype than bf16, a bias, dropout, padding,
 * heads that are neither 64 nor 128 wide, strides that are no multiples of 16 bytes. Nor ours for
 * 9.0, which need strides that are multiples of the width. direction: forward or backward. */
enum attention_doer attention_choose(const struct attention_choice *choice,
                                     enum attention_direction direction, enum dtype t,
                                     const struct attention_shape *shape);

/* Whether anything is known of the GPU, measured or published. */
bool attention_is_known(const struct attention_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
