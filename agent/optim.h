/* The optimizers of torch.optim over this rank's slices of the units. The state lies beside the
 * slices, on their home device, and is listed by PyTorch's names so that checkpoints can store it.
 * Knows slices; not parameters, ranks or files. */
#ifndef SHOAL_AGENT_OPTIM_H
#define SHOAL_AGENT_OPTIM_H

#include "agent/shard.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum optim_type { OPTIM_ADADELTA, OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW };

/* Fields that the type does not have are ignored. */
struct optim_config {
    enum optim_type type;
    float rho;          /* adadelta: 0.9 */
    float momentum;     /* sgd: 0 */
    bool nesterov;      /* sgd: needs momentum > 0 */
    float beta1, beta2; /* adam, adamw: 0.9, 0.999 */
    float eps;          /* adadelta: 1e-6; adam, adamw: 1e-8 */
    float weight_decay; /* 0; adamw: 0.01, decoupled */
};

/* PyTorch's defaults for the type. */
struct optim_config optim_defaults(enum optim_type type);

struct optim;

/* Allocates the state of all units, zeroed. shard: used until optim_close.
 * Errors: ERR_MEMORY, naming the state. */
int optim_open(const struct optim_config *config, struct shard *shard, struct optim **ret_optim,
               struct error *err);
void optim_close(struct optim *optim); /* NULL-safe */

/* One step with the gradients of shard_finish(), queued on shard_home_stream(); tells the shard
 * engine that values changed. */
void optim_step(struct optim *optim, float lr);

/* Steps so far; set when a checkpoint is loaded. Adam's bias correction depends on it. */
int64_t optim_steps(const struct optim *optim);
void optim_set_steps(struct optim *optim, int64_t steps);

/* The state, as torch.optim's state_dict names it: adadelta "square_avg", "acc_delta"; sgd with
 * momentum "momentum_buffer"; adam and adamw "exp_avg", "exp_avg_sq". */
int optim_state_count(const struct optim *optim); /* 0 .. 2 */
const char *optim_state_name(const struct optim *optim, int state);
/* [shard_count of the unit] fp32, on the slices' home device, laid out as the unit's value. */
float *optim_state(const struct optim *optim, int unit, int state);

#ifdef __cplusplus
}
#endif
#endif
