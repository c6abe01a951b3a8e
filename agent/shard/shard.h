/* The shard engine: fully sharded data parallelism (FSDP). Knows units and collectives, not layers.
 *
 * A unit is gathered at once: the parameters of a module, and of its children that have no unit of
 * their own, in one flat buffer. Each tensor in it starts on 16 bytes. The unit is cut into S equal
 * slices, S being the size of the shard group: each rank keeps one slice in fp32 with its optimizer
 * state. If the model computes in bf16, a bf16 copy of the slice lies beside it and is gathered;
 * with bf16-true there is only that one. What is multiplied in fp8 can be gathered so
 * (shard_payload.h). Gradients are fp32, apart from reduce_dtype between ranks.
 *
 * The tape's hooks call the engine around each use of a unit:
 *
 *  - forward: wait for the unit's gather, compute, reshard; with forward_prefetch the next gather
 *    runs meanwhile
 *  - backward: the same in reverse, with backward_prefetch; the unit's reduction runs while the
 *    next unit computes
 *
 * The five strategies are settings of this one engine. W: ranks in the world.
 *
 *  - FULL_SHARD: S = W; units are resharded after forward
 *  - SHARD_GRAD_OP: S = W; units stay unsharded until backward
 *  - NO_SHARD: S = 1; the slice is the whole unit and is used in place
 *  - HYBRID_SHARD: S = shard_group_size; resharded after forward
 *  - HYBRID_SHARD_ZERO2: S = shard_group_size; unsharded until backward
 *
 * A reduction is a reduce_scatter within the shard group (S > 1), then an all_reduce between the W
 * / S groups. Gradients are the mean over all ranks. With reduction slots (slots.h) it is an
 * all_to_all in the world and a sum in one order, then an all_gather between the groups, once a
 * step; gradients are the mean over all slots. The root unit stays unsharded from its first
 * use to the end of backward, as in PyTorch. A pass enters a unit's module at most once.
 *
 * Every rank issues its collectives in one order. With a backward prefetch the gather of unit u - 1
 * comes before the reduction of u, with NO_PREFETCH after it. They run on the engine's own streams.
 * Events order these after all earlier work on the compute stream, and before all later work once
 * shard_finish() was called; with update_beside, once the optimizer's step was. So another user of
 * the same communicator must queue its collectives on the compute stream, between passes.
 *
 * If the communicator is concurrent, reductions have a stream and a communicator of their own and
 * run beside gathers. Otherwise one stream runs both in that order. The bits are the same. */
#ifndef SHOAL_AGENT_SHARD_SHARD_H
#define SHOAL_AGENT_SHARD_SHARD_H

#include "agent/comm/comm.h"
#include "agent/nn/module.h"
#include "agent/nn/tape.h"
#include "agent/shard/shard_layout.h"
#include "agent/shard/slots.h"
#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum shard_strategy {
    FULL_SHARD = 1, /* PyTorch's numbers */
    SHARD_GRAD_OP,
    NO_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
};
const char *shard_strategy_name(enum shard_strategy strategy); /* "FULL_SHARD" */

/* What the compute stream waits for; SHARD_WAIT_NOTHING: it goes on. */
enum shard_wait {
    SHARD_WAIT_NOTHING,
    SHARD_WAIT_COLLECTIVE,
    SHARD_WAIT_UPDATE, /* with update_beside, of a unit: also what a gather waits for */
};

enum backward_prefetch {
    NO_PREFETCH,
    BACKWARD_PRE,  /* gather the next unit before this unit's backward: most overlap */
    BACKWARD_POST, /* after it: less memory */
};

struct shard_config {
    enum shard_strategy strategy;
    int shard_group_size; /* HYBRID only: S, divides W; consecutive ranks form a group */
    enum backward_prefetch backward_prefetch;
    bool forward_prefetch;   /* gather the next unit ahead, in the order of the last pass */
    bool limit_all_gathers;  /* gather at most one unit ahead, so two are in memory; false: all
                                that are left in the pass */
    bool accumulate_sharded; /* micro-batches before the last: true reduces after each (less
                                memory); false keeps unsharded gradients (less traffic). No effect
                                if S is 1 */
    bool update_beside;      /* the optimizer has a stream of its own: a unit is updated beside the
                                next pass, which waits for it where it uses the unit. No effect with
                                CPU offload */
    enum dtype param_dtype;  /* of gathered parameters: what the model computes in */
    bool gathers_fp8;        /* units of weights that are multiplied in fp8 are gathered in fp8,
                                where that is fewer bytes: the same numbers. param_dtype is bf16 */
    enum dtype slice_dtype;  /* fp32, or param_dtype: what the optimizer updates */
    enum dtype reduce_dtype; /* of gradients between ranks */
    bool windows;            /* small units lie in symmetric windows (window_plan.h) where the
                                communicators have any. No effect if S is 1, or with CPU offload;
                                reductions with slots have none, nor have gathers in fp8 */
    int slots;               /* whose gradients are summed in one order (slots.h), >= the ranks of
                                the world, and without CPU offload; 0: each rank's gradients, in
                                the order of the collectives */
    /* NULL, or called before and after the compute stream waits, to measure it. */
    void (*waits)(void *ctx, enum shard_wait what);
    void *waits_ctx;
};

/* The public part of a unit. The engine owns all pointers. */
struct shard_unit {
    struct module *module;
    int64_t count;       /* elements of its parameters */
    int64_t flat_count;  /* with padding, which is always 0; a multiple of the layout's
                            align times S */
    int64_t shard_count; /* flat_count / S; 0 for a root whose children took all parameters */
    void *value;         /* this rank's slice, [shard_count] of slice_dtype, on the shard device */
    void *copy;          /* the same in param_dtype, which is gathered; NULL: value is */
    float *gradient; /* [shard_count], on the shard device; valid from shard_finish() to the next
                        backward */
};

struct shard;

/* Cuts the model into the units of the wrap policy (module.unit; the root is unit 0) and allocates
 * the slices. compute: the stream where the model runs. shard_device: holds slices and optimizer
 * state; if it is not compute's device, this is CPU offload. world: used until shard_close(), not
 * owned. Collective for HYBRID. Errors: ERR_CONFIG if shard_group_size does not divide the world;
 * ERR_MEMORY. */
int shard_open(const struct shard_config *config, struct stream *compute,
               struct device *shard_device, struct comm *world, struct module *root,
               struct shard **ret_shard, struct error *err);
void shard_close(struct shard *shard); /* NULL-safe; waits for what is queued */

/* Writes the initial values: element i of parameter p is p.init's random number for
 * (random_key(seed, p.index, 0, 0), i). So any layout starts with the same model, and ranks send
 * each other nothing. */
void shard_init_values(struct shard *shard, uint64_t seed);
/* Zeroes in their place, for a checkpoint's values to be written over: it has none for the padding
 * behind them. */
void shard_clear_values(struct shard *shard);

/* For tape_open(). */
struct tape_hooks shard_hooks(struct shard *shard);

/* Before each micro-batch: whether it is the last of the optimizer step. */
void shard_begin(struct shard *shard, bool last_micro_batch);
/* With reduction slots, instead: before each turn of the step, in their order. */
void shard_begin_turn(struct shard *shard, const struct slots_turn *turn);
/* Whether each micro-batch is reduced, with slots: slots_turn()'s `each`. */
bool shard_reduces_each(bool accumulate_sharded, enum shard_strategy strategy);
/* After the last backward of the step: later work on the update stream sees the reduced gradients.
 * A unit that no backward has reached has gradient 0. */
void shard_finish(struct shard *shard);
/* After new values were queued on shard_update_stream(), by an optimizer step or a loaded
 * checkpoint: reshards all units, as their gathered values are stale. */
void shard_values_changed(struct shard *shard);
/* Likewise after an update that wrote the copies, too, between shard_finish() and the next
 * pass. */
void shard_values_updated(struct shard *shard);
/* Before that, once all of a unit's update is queued: with update_beside, who uses the unit next
 * waits for no more than this. */
void shard_unit_updated(struct shard *shard, int unit);
/* Before an update: later work on compute comes behind what is on the update stream now, such as
 * the norm of the gradients. */
void shard_join_update(struct shard *shard);
/* Reshards every unit. Evaluation leaves the root unsharded, and what the strategy keeps. */
void shard_reshard_all(struct shard *shard);

/* sums[0 .. count) are doubles on the shard device, queued on shard_update_stream(). Each becomes
 * the sum over the shard group, whose ranks together have every element once. The same bits on
 * every rank of the world. count <= SHARD_MAX_SUMS. Collective. */
enum { SHARD_MAX_SUMS = 32 };
void shard_sum(struct shard *shard, double *sums, int count);
/* Whether sums over elements may not depend on how units are cut. */
bool shard_has_slots(const struct shard *shard);

enum dtype shard_dtype(const struct shard *shard);             /* of slices */
struct stream *shard_update_stream(const struct shard *shard); /* of the optimizer */
int shard_unit_count(const struct shard *shard);
const struct shard_unit *shard_get_unit(const struct shard *shard, int unit);
int shard_group_size(const struct shard *shard); /* S */
/* True on the ranks of the first shard group, which together have all values once: they save. */
bool shard_is_first_replica(const struct shard *shard);

/* The ranges of parameters in this rank's slices, in declaration order. */
const struct param_range *shard_ranges(const struct shard *shard, int *ret_count);

/* Queues a copy of `count` elements between host memory and a slice, or optimizer state of the same
 * dtype. On shard_update_stream(). */
void shard_read(struct shard *shard, void *ret_values, const void *slice, int64_t count);
void shard_write(struct shard *shard, void *slice, const void *values, int64_t count);

/* Gathers a whole parameter into host memory (p->count floats) on every rank, for exports.
 * Collective; blocks. Errors: ERR_MEMORY, as it needs memory for one unit in slice_dtype. */
int shard_gather_param(struct shard *shard, const struct param *p, float *ret_values,
                       struct error *err);

/* Waits for all streams of the engine and for compute. Errors: the first stream's that failed. */
int shard_sync(struct shard *shard, struct error *err);
/* The same, but for an update beside the next pass. What goes wrong there is told by the next
 * one. */
int shard_sync_pass(struct shard *shard, struct error *err);

/* What lies in symmetric windows. */
struct shard_windows {
    int units;             /* with parameters */
    int gathered, reduced; /* of them, whose gathers and reductions run there */
    int fp8;               /* of them, gathered in fp8, and so outside */
    int64_t bytes;
    const char *why; /* the ranks do without one; "": they do not, or nobody asked. The engine's */
};
struct shard_windows shard_get_windows(const struct shard *shard);

/* Adds the counters of the communicators that the engine has opened itself (HYBRID's groups, the
 * reductions'). The caller has the world's own. */
void shard_add_traffic(const struct shard *shard, struct comm_stats *stats);
#endif
