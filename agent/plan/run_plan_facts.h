/* The facts that a plan is made of, from a configuration, its model cut into units and, of whose
 * attention it is, the environment (ENV_ATTENTION) and kernels/attention_choice.h. Touches no data,
 * device or network. */
#ifndef SHOAL_AGENT_PLAN_RUN_PLAN_FACTS_H
#define SHOAL_AGENT_PLAN_RUN_PLAN_FACTS_H

#include "agent/config/config.h"
#include "agent/models/model.h"
#include "agent/plan/run_plan.h"

/* What decides a language model's FLOPs. tokens: of a sample; of an encoder-decoder, of both its
 * sequences together. */
struct flops_shape run_plan_flops_shape(const struct agent_config *config,
                                        const struct language_shape *language, int64_t parameters,
                                        int64_t tokens);

/* The ranks of a run. */
struct run_plan_world {
    int world_size, node_size; /* in all; on a node, which is HYBRID's default group */
    int compute_capability;    /* of their GPUs, as device_compute_capability(); 0: not known, and
                                  taken for 9.0 */
    const char *attention;     /* in ENV_ATTENTION's place; NULL: the environment's */
};

/* Memory from `arena`. Errors: ERR_CONFIG if samples are longer than the model takes, the strategy
 * is HYBRID and its group does not divide the world (for others the group is the default one then),
 * or ENV_ATTENTION is no choice, or none for such GPUs. */
int run_plan_facts_make(const struct agent_config *config, const struct model *model,
                        const struct run_plan_world *world, struct arena *arena,
                        struct run_plan_facts *ret_facts, struct error *err);

/* Makes them those of a run on CPUs, where runtime.device leaves that open: there fewer logits are
 * alive at once, and pieces of slots' gradients are smaller. */
void run_plan_facts_of_host(const struct model *model, struct run_plan_facts *facts);

/* Adds what would make a rank's part under the strategy smaller, by what it saves: "--x=y saves
 * 1.5 GB, ...". Errors: as above. */
int run_plan_savings(const struct agent_config *config, const struct model *model,
                     const struct run_plan_world *world, enum shard_strategy strategy,
                     struct str *out, struct error *err);
/* Adds a line with what checkpoints in memory take once an elastic run has shrunk to so few ranks;
 * nothing if there are none, or the strategy's groups do not divide these. */
void run_plan_print_fewest(const struct agent_config *config, const struct model *model,
                           const struct run_plan_world *fewest, enum shard_strategy strategy,
                           struct str *out);
#endif
