/* From the configuration to the settings of the trainer's parts; the plan of a run is made of the
 * same. Pure. */
#ifndef SHOAL_AGENT_PLAN_TRAINER_SETTINGS_H
#define SHOAL_AGENT_PLAN_TRAINER_SETTINGS_H

#include "agent/config/config.h"
#include "agent/nn/tape.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"
#include "base/mem.h"

struct decay_rule; /* which parameters' weights decay; NULL: all */

enum dtype trainer_dtype(const struct agent_config *c); /* what the model computes in */
bool trainer_is_fp8(const struct agent_config *c);      /* its blocks' linear layers */
/* Whether the GPU `gpu`, of that compute capability (10 major + minor; 0: the CPU), multiplies the
 * numbers that the run asks for. ERR_UNSUPPORTED: it does not. */
int trainer_check_capability(const struct agent_config *c, const char *gpu, int capability,
                             struct error *err);
/* What the weights and the optimizer's state are kept and saved in. */
enum dtype trainer_slice_dtype(const struct agent_config *c);
struct shard_config trainer_shard_config(const struct agent_config *c, enum shard_strategy strategy,
                                         int group_size);
/* Memory from `arena`, but for what trainer_decay_rule_free() gives back. */
int trainer_decay_rule(const struct agent_config *c, struct arena *arena,
                       struct decay_rule **ret_rule, struct error *err);
void trainer_decay_rule_free(struct decay_rule *rule); /* NULL-safe */
struct optim_config trainer_optim_config(const struct agent_config *c, struct decay_rule *rule);
/* Passes over the data that the run begins: the last may be a part of one. 0: as many as max_steps
 * takes. */
int64_t trainer_epochs(const struct agent_config *c);
/* steps: of the whole run; <= 0: not known. */
int trainer_schedule(const struct agent_config *c, int64_t steps, struct schedule *ret_schedule,
                     struct error *err);
enum tape_checkpointing trainer_checkpointing(const struct agent_config *c);
#endif
