/* What time_plan*.c share: a configuration, or one that differs in a setting, planned and timed. */
#ifndef SHOAL_AGENT_PLAN_TIME_PLAN_INTERNAL_H
#define SHOAL_AGENT_PLAN_TIME_PLAN_INTERNAL_H

#include "agent/plan/time_plan.h"

struct time_variant {
    const struct agent_config *config;
    enum shard_strategy strategy;
    const char *attention; /* as in struct run_plan_world */
};

struct time_outcome {
    struct time_step steps[TIME_BANDS];
    struct time_ranks ranks;
    int64_t device_bytes;
    double flops_per_token[FLOPS_CONVENTIONS];
    enum time_attention_doer attention; /* forward */
    bool backward_is_ours; /* cuDNN does attention's backward in a form whose speed nobody knows:
                              it is timed as ours */
};

/* world: its GPUs are those of the question. Errors: as time_plan_make(). */
int time_plan_evaluate(const struct time_variant *variant, const struct model *model,
                       const struct run_plan_world *world, const struct time_question *question,
                       struct time_outcome *ret_outcome, struct error *err);

/* Beside what libraries take. */
bool time_plan_fits(const struct time_plan *plan, int64_t device_bytes);

/* Fills in the plan's advice. now: what the variant gave. */
int time_plan_advise(const struct time_variant *variant, const struct time_outcome *now,
                     const struct model *model, const struct run_plan_world *world,
                     struct time_plan *plan, struct error *err);
#endif
