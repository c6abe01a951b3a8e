/* Training as all ranks of a small world see it: threads over comm_local; the MNIST network with
 * weights and samples by the formulas of tests/data/parity/README.md, a Llama on hashed tokens, or
 * another language model on batches of its own.
 * Failures are errors: the rank threads are not cmocka's. */
#ifndef SHOAL_TESTS_AGENT_WORLD_H
#define SHOAL_TESTS_AGENT_WORLD_H

#include "agent/models/architecture.h"
#include "agent/models/mnist.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORLD_MAX_RANKS = 4, WORLD_MAX_STEPS = 10, WORLD_MAX_PARAMS = 64 };

/* What to do. */
struct world {
    const char *device; /* NULL: support_device() */
    bool windows;       /* small units lie in symmetric windows; with nccl */
    bool nccl;          /* each rank has a GPU of its own, and the collectives are NCCL's */
    int ranks;
    struct shard_config config;
    int64_t min_num_params; /* of wrap_by_size; 0: one unit */
    bool offload;
    struct mnist_shape shape;
    const struct llama_config *llama;    /* NULL: the MNIST network */
    const struct architecture *language; /* NULL: neither T5 nor BERT (but no pre-training) */
    int64_t T;                           /* of language models */
    bool fp8;                            /* linear layers of its blocks multiply in it */
    enum tape_checkpointing checkpointing;
    int horizon; /* activations go to a host device and come back so many blocks ahead; 0: stay */
    struct optim_config optim;
    float lr;
    const struct schedule *schedule; /* NULL: lr in each step */
    int steps;
    int64_t rows;        /* of all ranks in one optimizer step */
    int micro_batches;   /* a step's rows come in so many parts; 0: one */
    int dealt_to;        /* rank r has the samples r, r + dealt_to, ...; 0: ranks */
    bool same_batch;     /* in each step; false: fresh samples */
    int64_t limit_bytes; /* of rank 1's compute device, from the second step on; 0: none */
    float loss_scale;    /* 0: gradients are those of the mean loss over all rows */
};

/* What came of it. */
struct world_result {
    double losses[WORLD_MAX_STEPS];        /* mean over the rows */
    double rank_losses[WORLD_MAX_RANKS];   /* sums of the first step */
    int64_t fresh_blocks[WORLD_MAX_STEPS]; /* of all of rank 0's devices, after each step */
    double norms[WORLD_MAX_STEPS][WORLD_MAX_RANKS]; /* of gradients, if they are clipped */
    double evaluation; /* the loss after the last step, without dropout, of the first batch */
    int64_t offsets[WORLD_MAX_PARAMS + 1]; /* of each parameter in these three: */
    int64_t count;                         /* of all elements */
    float *gradients;                      /* of the first step, put together from the slices */
    float *weights;                        /* after the last, put together from the slices */
    float *gathered;                       /* the same from shard_gather_param() */
    struct comm_stats first, second;       /* rank 0, after one step and after two */
    struct memory_use use;  /* rank 0's compute device, peaks from the second step on */
    struct memory_use host; /* the same of where activations go */
    struct memory_use evaluated,
        reset; /* the same after evaluation, and after shard_reshard_all() */
    struct error errors[WORLD_MAX_RANKS]; /* code ERR_NONE: the rank did not fail */
    int64_t leaked_bytes;                 /* on any device of any rank, after all was closed */
};

/* Runs the ranks; *ret_result is the caller's to free in any case. The error is that of the
 * lowest rank that failed by itself, else (all tell of a lost peer) of the lowest that failed. */
int world_run(const struct world *world, struct world_result *ret_result, struct error *err);
void world_result_free(struct world_result *result);

/* The tutorial's network at reduced size, without dropout. */
struct mnist_shape world_small_shape(void);

/* Three layers, odd sizes, 2 heads to a key. */
struct llama_config world_llama(void);

/* The formulas' hash. */
uint32_t world_hash(uint32_t index, uint32_t stream);
#endif
