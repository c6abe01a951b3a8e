/* What a run will need, before any device is paid for: memory of a rank by kind, bytes sent and
 * FLOPs of an optimizer step, for each of the five strategies; and what is recommended for a model
 * of this size. Pure arithmetic over facts; knows no module tree, device or network.
 *
 * W ranks, S of them share one copy (the shard group), R = W / S. P: elements of all units. The
 * root unit, of K elements, stays unsharded through a pass. Unsharded and resharded are blocks,
 * the two largest of U and U' elements, and other units, the largest of E. v, g: bytes of a value
 * and of a gradient.
 *
 *   FULL_SHARD     gathered v (K + max(U + U', E + U)), whole gradients g (K + max(U + U', E));
 *   SHARD_GRAD_OP  gathered v P, whole gradients g (K + U + U' + E);
 *   NO_SHARD       neither: used and reduced in place
 *
 * A unit that is gathered in fp8 (agent/shard/shard_payload.h) has v = 1; the rest of all such
 * units, and the messages of one, stay beside.
 *
 * What ops need beside tensors, and what is lost between tensors, is not known to the byte: the
 * total has an allowance for it, the sum of three parts. The first is RUN_PLAN_SCRATCH bytes, the
 * largest workspace of a matrix product, or the scratch of a layer's attention if that is more; and
 * with fp8 the copies of a product's operands. The second is gradients of the feed-forward's middle
 * and of what goes on to the next layer. The third is a RUN_PLAN_PART of what comes and goes within
 * a step. A GPU's memory is reserved up to here, but run_plan_libraries() bytes are left free. The
 * driver takes what CUDA graphs need: RUN_PLAN_KERNEL bytes for each of RUN_PLAN_KERNELS kernels
 * that a layer's passes and its update are, in each of RUN_PLAN_FORMS; it promises no number, so
 * this is an allowance, too. With `windows` what lies in symmetric windows
 * (agent/shard/window_plan.h) is NCCL's memory beside the reserve, in granules of 2 MiB. Of what
 * the reserve has for small units, slices and buffers that a unit keeps go from there. Places that
 * units share are counted in both: a unit that finds none, or is too large, lies in the reserve. */
#ifndef SHOAL_AGENT_PLAN_RUN_PLAN_H
#define SHOAL_AGENT_PLAN_RUN_PLAN_H

#include "agent/nn/tape.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/flops.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_PLAN_STRATEGIES = 5 };

enum plan_role { PLAN_ROOT, PLAN_BLOCK, PLAN_OTHER };

struct plan_unit {
    int64_t flat_count; /* elements, padded for one rank */
    enum plan_role role;
    int64_t fp8_count; /* of the elements, those of weights that are multiplied in fp8 */
};

/* Bytes per element. */
struct plan_bytes {
    int value;     /* of the slice that is gathered, and of activations */
    int master;    /* of the fp32 copy beside it; 0: none */
    int state;     /* of all optimizer states together */
    int gradient;  /* in memory */
    int reduction; /* as sent */
};

enum {
    RUN_PLAN_SCRATCH = 32 << 20,
    RUN_PLAN_CUDNN = 256 << 20, /* the most that cuDNN's attention may have as its workspace */
    RUN_PLAN_PART = 16,         /* the 16th part */
    RUN_PLAN_KERNEL = 64 << 10,
    RUN_PLAN_KERNELS = 64,
    RUN_PLAN_FORMS = 2, /* of a whole batch and of the last one */
    RUN_PLAN_LIBRARIES = 512 << 20,
    RUN_PLAN_SNAPSHOTS = 2, /* in memory: one stays whole while the other is written */
};

/* Sizes of a language model's activations; L 0: not one. Then bytes of the pass that holds the
 * most; 0: they are not known. */
struct plan_activations {
    int64_t pass_bytes;
    int64_t L, D, heads, kv_heads, hd, I;
    int64_t decoder_L, target_tokens;     /* of an encoder-decoder, L and the other tokens being the
                                             encoder's; else 0 */
    bool gated;                           /* the feed-forward has a gate: SwiGLU */
    bool bias;                            /* attention has one, of the distance */
    bool cudnn_forward, cudnn_backward;   /* attention is cuDNN's, where it can be */
    bool hopper_forward, hopper_backward; /* it is our kernels' for compute capability 9.0 */
    bool nondeterministic;                /* its backward may add up in any order */
    bool fp8;                             /* blocks' linear layers multiply in it */
    bool fp8_decoded;                     /* decoded to bf16 first, as a CPU does */
    int64_t chunk_rows;                   /* tokens whose logits are alive at once */
    int64_t logit_stride;                 /* elements of a token's logits */
    enum tape_checkpointing checkpointing;
    bool offload;    /* what blocks keep goes to the host */
    int64_t horizon; /* but for so many blocks */
};

struct run_plan_facts {
    int64_t parameters;
    const struct plan_unit *units;
    int unit_count;
    struct plan_bytes bytes;
    struct plan_activations activations;
    double flops_per_token[FLOPS_CONVENTIONS]; /* 0: not known */
    int64_t batch_rows, sequence_tokens;       /* of a rank's micro-batch; tokens 0: images */
    int slots;                                 /* parallel.reduction_slots; 0: none */
    int world_size, group_size;                /* group_size: S of the HYBRID strategies */
    int64_t micro_batches;                     /* of an optimizer step */
    bool accumulate_sharded;                   /* micro-batches before the last are reduced too */
    bool on_host;                              /* ranks compute on CPUs */
    bool cpu_offload;                          /* what is persistent lies on the host */
    bool cuda_graphs;
    bool windows;      /* small units lie in symmetric windows */
    int memory_copies; /* of ranks whose snapshots each one keeps; 0: there are none */
};

struct run_plan_strategy {
    enum shard_strategy strategy;
    int group_size;   /* S */
    bool gathers_fp8; /* each block is gathered in fp8 */
    /* Bytes per rank. Persistent: from start to end. */
    int64_t values, masters, states, gradients;
    int64_t persistent; /* the sum of these four */
    /* At the worst moment of a step. */
    int64_t gathered;
    int64_t whole_gradients; /* before they are reduced; in bf16, how they are sent too */
    int64_t transient; /* of the two together: they need not have their worst at the same moment */
    int64_t allowance; /* for ops' scratch and for what is lost between tensors */
    /* All of it, activations included if they are known, by where it lies. */
    int64_t device, host;
    int64_t snapshot;           /* what a checkpoint holds of the rank */
    int64_t memory_checkpoints; /* on the host, but no part of it: only where a launcher may start
                                   the ranks again */
    int64_t windows;            /* of `device`: symmetric windows */
    int64_t
        reserve; /* likewise, what tensors and scratch are cut from: all but windows and graphs */
    /* Per rank and optimizer step, by rings. */
    int64_t sent_in_group, sent_between_groups;
};

struct run_plan {
    int64_t parameters;
    int units;
    struct run_plan_strategy strategies[RUN_PLAN_STRATEGIES]; /* FULL_SHARD first */
    int64_t activations;             /* bytes per rank at the end of forward; 0: not known */
    int64_t host_activations;        /* likewise, on the host */
    int64_t logits;                  /* bytes of a chunk of them, and then of its gradient */
    int64_t activation_gradients;    /* likewise, gradients of activations that a layer's backward
                                        works on */
    int64_t fp8_copies;              /* likewise, in fp8 and as decoded: of one linear layer's
                                        operands */
    int64_t graphs;                  /* bytes per rank that CUDA graphs are allowed for */
    int64_t samples, tokens;         /* of all ranks in an optimizer step */
    double flops[FLOPS_CONVENTIONS]; /* of all ranks in an optimizer step; 0: not known */
};

void run_plan_make(const struct run_plan_facts *facts, struct run_plan *ret_plan);

/* The AWS guide's table of sizes. */
struct run_plan_advice {
    const char *size; /* "1B to 10B parameters" */
    enum shard_strategy strategy;
    bool offload_activations; /* where GPUs of 80 GB do not hold them */
    bool cpu_offload_if_needed;
    int min_gpus, max_gpus; /* per node */
    int min_nodes, max_nodes;
};
struct run_plan_advice run_plan_advise(int64_t parameters);

/* What libraries ask a GPU for beside the plan, which is no part of its total: RUN_PLAN_LIBRARIES
 * for kernels that are loaded at their first launch and the like; and between ranks NCCL's buffers,
 * which come with the first collectives of each communicator. They promise no number, so it is a
 * guess. NCCL's is from the sizes in its source (2.28; src/transport/nvls.cc, src/init.cc): 8 GPUs
 * of 80 GB with NVLink have 24 channels, of which a ring takes 220 MiB, a tree as much and NVLink
 * SHARP 256, with a communicator for gathers and one for reductions. Smaller GPUs have fewer: a
 * part of their memory. gpu_bytes: all that it has. */
int64_t run_plan_libraries(int ranks, int64_t gpu_bytes);

/* What of a block backward has to compute again on GPUs of RUN_PLAN_GPU_GB: the least, but no more
 * than is configured, with which they hold the rank's part and RUN_PLAN_LIBRARIES (such GPUs have
 * five GB more than that, with room for NCCL's). As configured where nothing less fits or
 * activations are unknown. *ret_device: bytes there with it. */
enum { RUN_PLAN_GPU_GB = 80 };
enum tape_checkpointing run_plan_least_recompute(const struct run_plan_facts *facts,
                                                 enum shard_strategy strategy, int64_t *ret_device);

/* Whether units are so small, on the average, that gathering them takes longer than the work it
 * could hide behind: one unit, or no shards, is then faster. */
bool run_plan_units_are_small(int64_t parameters, int units);

/* As a table for people. current: the strategy that is configured; it is marked. */
void run_plan_print(const struct run_plan *plan, const struct run_plan_facts *facts,
                    enum shard_strategy current, struct str *out);
/* The strategy that is configured, in a few lines. */
void run_plan_print_short(const struct run_plan *plan, const struct run_plan_facts *facts,
                          enum shard_strategy current, struct str *out);
/* The line of it that names flags and machines for the model's size; no strategy that needs more
 * memory than `current`, where that is not NULL. */
void run_plan_print_advice(const struct run_plan *plan, const enum shard_strategy *current,
                           struct str *out);
/* As one JSON object. time: an object of time_plan_json(), or "". */
void run_plan_json(const struct run_plan *plan, const struct run_plan_facts *facts,
                   enum shard_strategy current, const char *time, struct str *out);
#endif
