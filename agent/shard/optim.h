/* The optimizers of torch.optim over this rank's slices of the units, and the norm of all
 * gradients. The state lies beside the slices, on their device and in their dtype, and is
 * listed by PyTorch's names so that checkpoints can store it. Knows slices and the parameters in
 * them; not ranks or files. */
#ifndef SHOAL_AGENT_SHARD_OPTIM_H
#define SHOAL_AGENT_SHARD_OPTIM_H

#include "agent/shard/optim_kind.h"
#include "agent/shard/shard.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* PyTorch's defaults for the optimizer; no decay rule, no clipping, seed 0. */
struct optim_config optim_defaults(const struct optim_kind *kind);

struct optim;

/* A decay rule ("norm_bias"): norms and biases, which have fewer than 2 dimensions, do not decay.
 * ctx: not used. */
bool optim_decays_matrices(void *ctx, const struct param *p);

/* Allocates the state of all units, zeroed. shard: used until optim_close.
 * Errors: ERR_MEMORY, naming the state. */
int optim_open(const struct optim_config *config, struct shard *shard, struct optim **ret_optim,
               struct error *err);
void optim_close(struct optim *optim); /* NULL-safe */

/* Queues the L2 norm of the gradients of shard_finish() over all parameters. Collective. A step
 * that clips calls it itself, unless the caller has since the last step. */
void optim_measure(struct optim *optim);
/* The last norm, of gradients before clipping: the same on every rank, and infinite or NaN if a
 * gradient is. So all ranks decide alike whether to skip the step. Valid once shard_sync() has
 * waited for optim_measure(), or shard_sync_pass() behind an optim_step(). */
double optim_norm(const struct optim *optim);

/* Queues one step with the gradients of shard_finish() on shard_update_stream(). It clips what it
 * reads; the gradients stay. Calls shard_values_updated(). */
void optim_step(struct optim *optim, float lr);

/* Steps so far; set when a checkpoint is loaded. Adam's bias correction depends on it. */
int64_t optim_steps(const struct optim *optim);
void optim_set_steps(struct optim *optim, int64_t steps);

/* Tensors of state per parameter: 0 .. 2. */
int optim_config_states(const struct optim_config *config);
int optim_state_count(const struct optim *optim);
/* As torch.optim's state_dict names it: "exp_avg". */
const char *optim_state_name(const struct optim *optim, int state);
/* [shard_count of the unit], on the slices' device, laid out as the unit's value and of its
 * dtype. */
void *optim_state(const struct optim *optim, int unit, int state);
#endif
