/* The shard engine: fully sharded data parallelism. Knows units and collectives, not layers.
 *
 * A unit is what is gathered at once: the parameters of a module (and of its children that belong
 * to no unit of their own) in one flat buffer, each tensor padded to 16 bytes. Each rank keeps its
 * slice, 1/S of the unit, with its optimizer state; S is the size of the shard group. If the model
 * computes in bf16 a copy of the slice in bf16 lies beside the fp32 one and is what is gathered; or
 * there is no fp32 one (bf16-true). Gradients are fp32 but on the way between ranks. Around each
 * use (the tape's hooks):
 *
 *  - forward: wait for gather(u), compute, drop; a prefetched gather(u + 1) runs meanwhile on the
 *    engine's own stream;
 *  - backward: the same in reverse; then reduce(u) runs while the next unit computes.
 *
 * The five strategies are settings of this one engine. W: ranks in the world.
 *
 *  - FULL_SHARD: S = W; units are dropped after their forward
 *  - SHARD_GRAD_OP: S = W; kept until their backward
 *  - NO_SHARD: S = 1; the slice is the whole unit and is used in place
 *  - HYBRID_SHARD: S = shard_group_size; dropped after forward
 *  - HYBRID_SHARD_ZERO2: S = shard_group_size; kept
 *
 * To reduce is to reduce_scatter within the shard group (S > 1), then to all_reduce between the W /
 * S groups; gradients are the mean over all ranks. The root unit stays gathered from its first use
 * to the end of backward, as PyTorch's does. A unit's module is entered at most once in a pass.
 *
 * Every rank issues its collectives in the same order: gather(u - 1) before reduce(u). They run on
 * the engine's own streams, ordered by events after what the compute stream was given before the
 * pass and before what it is given after shard_finish(): other users of the same communicator are
 * in step if they queue theirs on the compute stream between passes.
 *
 * The two run at once if the communicator is concurrent: reduces then have a stream and a
 * communicator, split from the gathers', of their own. Else one stream takes both in that order.
 * Either way the same bits come out and the same memory is used. */
#ifndef SHOAL_AGENT_SHARD_H
#define SHOAL_AGENT_SHARD_H

#include "agent/comm/comm.h"
#include "agent/nn/module.h"
#include "agent/nn/tape.h"
#include "agent/shard/shard_layout.h"
#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shard_strategy {
    FULL_SHARD = 1, /* PyTorch's numbers */
    SHARD_GRAD_OP,
    NO_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
};
const char *shard_strategy_name(enum shard_strategy strategy); /* "FULL_SHARD" */

enum backward_prefetch {
    NO_PREFETCH,
    BACKWARD_PRE, /* gather the next unit before this unit's gradients are computed: most overlap */
    BACKWARD_POST, /* after: less memory */
};

struct shard_config {
    enum shard_strategy strategy;
    int shard_group_size; /* HYBRID only: S, divides W; consecutive ranks form a group */
    enum backward_prefetch backward_prefetch;
    bool forward_prefetch;   /* gather the next unit (as the last pass ordered them) ahead of use */
    bool limit_all_gathers;  /* at most one unit is gathered ahead of the one in use, so two are in
                                memory; false: all the rest of the pass */
    bool accumulate_sharded; /* micro-batches before the last: true reduces each (less memory);
                                false keeps unsharded gradients (less traffic). Nothing to choose if
                                S is 1 */
    enum dtype param_dtype;  /* of gathered parameters: what the model computes in */
    enum dtype slice_dtype;  /* fp32, or param_dtype: what the optimizer updates */
    enum dtype reduce_dtype; /* of gradients between ranks */
    /* NULL, or called around what makes compute wait for a collective, to find out how long. */
    void (*waits)(void *ctx, bool begins);
    void *waits_ctx;
};

/* One unit, as others see it. All pointers are the engine's. */
struct shard_unit {
    struct module *module;
    int64_t count;       /* elements of its parameters */
    int64_t flat_count;  /* with padding, which is always 0; a multiple of 4 S */
    int64_t shard_count; /* flat_count / S; 0 for a root whose children took all parameters */
    void *value;         /* this rank's slice, [shard_count] of slice_dtype, on the shard device */
    float *gradient; /* [shard_count], on the shard device; valid from shard_finish() to the next
                        backward */
};

struct shard;

/* Cuts the model into the units that the wrap policy has set (module.unit; the root is unit 0) and
 * allocates the slices. compute: the stream where the model runs. shard_device: where slices and
 * optimizer state live; another device than compute's is CPU offload. world: used until
 * shard_close(), not owned. Collective for HYBRID. Errors: ERR_CONFIG if shard_group_size does not
 * divide the world, ERR_MEMORY. */
int shard_open(const struct shard_config *config, struct stream *compute,
               struct device *shard_device, struct comm *world, struct module *root,
               struct shard **ret_shard, struct error *err);
void shard_close(struct shard *shard); /* NULL-safe; waits for what is queued */

/* Writes the initial values: element i of parameter p is p.init's number at
 * (random_key(seed, p.index, 0, 0), i), so any layout starts with the same model and nothing is
 * sent. */
void shard_init_values(struct shard *shard, uint64_t seed);

/* For tape_open(). */
struct tape_hooks shard_hooks(struct shard *shard);

/* Before each micro-batch: whether it is the last of the optimizer step. */
void shard_begin(struct shard *shard, bool last_micro_batch);
/* After the last backward of the step: orders the reduced gradients before what is queued on the
 * update stream from now on. A unit that no backward reached has gradient 0. */
void shard_finish(struct shard *shard);
/* After new values were queued on shard_update_stream() (an optimizer step, a loaded checkpoint):
 * what is gathered is stale and is dropped. */
void shard_values_changed(struct shard *shard);
/* Drops every gathered unit: evaluation leaves the root (and what the strategy keeps) gathered. */
void shard_reshard_all(struct shard *shard);

/* sum[0], a double on the shard device that was queued on shard_update_stream(), becomes the sum
 * over the ranks of the shard group, which together have every element once: the same bits on every
 * rank of the world. Collective. */
void shard_sum(struct shard *shard, double *sum);

enum dtype shard_dtype(const struct shard *shard);             /* of slices */
struct stream *shard_update_stream(const struct shard *shard); /* where the optimizer's ops go */
int shard_unit_count(const struct shard *shard);
const struct shard_unit *shard_get_unit(const struct shard *shard, int unit);
int shard_group_size(const struct shard *shard); /* S */
/* True on the ranks of the first shard group: together they have all values once. */
bool shard_is_first_replica(const struct shard *shard);

/* The ranges of all parameters in this rank's slices, in declaration order. */
const struct param_range *shard_ranges(const struct shard *shard, int *ret_count);

/* Queues a copy of `count` elements of a slice, or of what lies beside it in slice_dtype, to host
 * memory as they are, or back. On shard_update_stream(). */
void shard_read(struct shard *shard, void *ret_values, const void *slice, int64_t count);
void shard_write(struct shard *shard, void *slice, const void *values, int64_t count);

/* Gathers a whole parameter's slices into host memory (p->count floats) on every rank: for exports.
 * Collective; waits. Errors: ERR_MEMORY for one unit in slice_dtype. */
int shard_gather_param(struct shard *shard, const struct param *p, float *ret_values,
                       struct error *err);

/* Waits for all of the engine's streams and compute; the first failure of any of them. */
int shard_sync(struct shard *shard, struct error *err);

/* Adds what the communicators did that the engine opened itself (HYBRID's groups, the reduces');
 * the world's is the world's to tell. */
void shard_add_traffic(const struct shard *shard, struct comm_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
