/* An optimizer step kernel by kernel on a device of time_model.h: milliseconds by kind. The kernels
 * are ours, as agent/nn, agent/shard and kernels/cuda launch them; another program's differ by its
 * `time_ways`. Pure. */
#ifndef SHOAL_AGENT_PLAN_TIME_STEP_H
#define SHOAL_AGENT_PLAN_TIME_STEP_H

#include "agent/nn/tape.h"
#include "agent/plan/time_attention.h"
#include "agent/plan/time_model.h"
#include "agent/shard/shard.h"

/* A model and a rank's micro-batch. L 0: images. */
struct time_shape {
    int64_t rows;         /* samples */
    int64_t T, T_decoder; /* tokens of a sample; of an encoder-decoder, the encoder's and the
                             decoder's */
    int64_t L, L_decoder, D, heads, kv_heads, hd, I, V;
    bool gated, biases, rope, positions, distance_bias, sees_all, tied;
    bool post_norm;  /* norms are behind the residuals, as BERT's */
    bool packed_qkv; /* one matrix gives queries, keys and values */
    bool dropout;
    int64_t parameters;
    int value_bytes;
    /* Images: forward's FLOPs of a sample, its activations, and kernels of both passes. */
    double sample_flops;
    int64_t sample_count, pass_kernels;
};

/* How a program does a step. */
struct time_ways {
    struct time_attention forward_of,
        backward_of;  /* the kernels' speeds that each direction takes */
    double products;  /* speed of the blocks' products: 1; more with fp8 */
    double passes;    /* bytes of the passes over activations, of ours: 1; more without fusion */
    bool fp8_casts;   /* operands of blocks' products are scaled and cast as ours are */
    bool fp8_gathers; /* weights are cast before their gather, which is a byte for each element */
    bool packed;      /* queries, keys and values as one product, gate and up as another */
    bool fused_residual; /* a block's sum is made by the next norm, and its gradient not copied */
    bool fused_rope, fused_bias;
    bool fused_activation, fused_activation_gradient; /* in the epilogue of a product; so is the
                                                         gradient of a bias that is not added to */
    bool fused_clip, fused_cast; /* the clip factor and the bf16 copy within the update */
    bool update_beside;          /* units other than the root are updated under the next forward */
    bool padded_vocabulary;      /* rows of logits begin at multiples of 16 bytes */
    bool graphs;
    int64_t chunk_rows;  /* tokens whose logits are alive at once */
    int update_bytes;    /* read and written per element by the optimizer's update */
    int cast_bytes;      /* by the copy in bf16; 0: none */
    int collected_bytes; /* per element and micro-batch: copies into and out of what is gathered and
                            reduced. 0: used where it is */
    int gradient_bytes;  /* of a weight's gradient, as a product writes it */
    bool accumulates;    /* that is added to what is there, also in the first micro-batch */
    bool clips;
    bool skips_norm; /* nobody asks for that of the gradients */
    enum tape_checkpointing checkpointing;
    double recomputed_products; /* of a block's forward that backward multiplies again, beyond
                                   `checkpointing`; PyTorch's selective form: 0.5 */
};

/* Ours, as landed: AdamW of fp32 slices and a copy in bf16, gradients clipped. forward, backward:
 * who does that pass of attention; of cuDNN's backward the speed is known of the form that adds in
 * any order only. The caller adds chunk_rows, which hang on the vocabulary:
 * language_chunk_rows(). */
struct time_ways time_ways_ours(const struct time_device *device, enum time_attention_doer forward,
                                enum time_attention_doer backward);

/* Who shares the work. */
struct time_ranks {
    enum shard_strategy strategy;
    int world, group, node; /* ranks: all, that share one copy, of a node */
    double network;         /* bytes/s per GPU between nodes; 0: the device's */
    int64_t micro_batches;
    bool accumulate_sharded;
    int value_bytes, reduce_bytes; /* per element, as sent */
    int units;
    int64_t root, block, others;   /* elements of the root, of a block, of other units together */
    int64_t offloaded_activations; /* bytes a micro-batch */
    bool cpu_offload;
};

#define TIME_KINDS(X)                                                                              \
    X(TIME_PRODUCTS, "matrix products", "products")                                                \
    X(TIME_ATTENTION_FORWARD, "attention forward", "attention_forward")                            \
    X(TIME_ATTENTION_BACKWARD, "attention backward", "attention_backward")                         \
    X(TIME_PASSES, "memory-bound kernels", "memory_bound")                                         \
    X(TIME_OPTIMIZER, "optimizer", "optimizer")                                                    \
    X(TIME_COMMUNICATION, "exposed communication", "exposed_communication")                        \
    X(TIME_OFFLOAD, "exposed offload", "exposed_offload")                                          \
    X(TIME_GAPS, "launch gaps", "launch_gaps")
enum time_kind {
#define TIME_KIND(kind, text, key) kind,
    TIME_KINDS(TIME_KIND)
#undef TIME_KIND
        TIME_KIND_COUNT
};

struct time_step {
    double s[TIME_KIND_COUNT]; /* seconds per optimizer step */
    double total_s;
    double sent_s; /* of all collectives, hidden or not */
    int64_t launches;
    int64_t collectives;
    double tokens, samples; /* of a rank in a step */
};

void time_step_make(const struct time_device *device, const struct time_shape *shape,
                    const struct time_ways *ways, const struct time_ranks *ranks,
                    struct time_step *ret_step);
#endif
