#include "agent/reporter.h"

#include "agent/run_plan_facts.h"
#include "agent/telemetry/flops.h"
#include "base/clock.h"

#include <stdio.h>

/* Nothing that ends well takes longer: a first step with cold caches, an evaluation, a save. */
enum { HEALTHY_WITHIN_S = 1800 };

static int64_t wall_us(void)
{
    return clock_now_ms() * 1000;
}

static const char *precision_name(const struct agent_config *c)
{
    switch ((enum config_precision)c->precision.mixed) {
    case PRECISION_BF16_MIXED:
        return "bf16-mixed";
    case PRECISION_BF16_TRUE:
        return "bf16-true";
    default:
        return "fp32";
    }
}

struct telemetry_setting reporter_setting(const struct config *config, const struct model *model,
                                          const struct topology *t, const char *node)
{
    const struct agent_config *c = &config->value;
    struct telemetry_setting s = {
        .facts = {.model = c->model.architecture[0] ? c->model.architecture : model->type,
                  .strategy =
                      shard_strategy_name((enum shard_strategy)(c->parallel.strategy + FULL_SHARD)),
                  .precision = precision_name(c),
                  .preset = config->preset,
                  .device = c->runtime.device,
                  .job = t->job_id,
                  .run = "",
                  .node = node,
                  .rank = t->rank,
                  .local_rank = t->local_rank,
                  .world_size = t->world_size,
                  .restarts = t->restart_count,
                  .parameters = module_param_count(model->root),
                  .steps = c->schedule.max_steps,
                  .epochs = c->schedule.epochs,
                  .peak_flops_per_s = flops_peak_per_s(c->runtime.device)},
        .style = (enum log_style)c->logging.style,
        .logging_steps = c->logging.steps,
        .out = stdout,
        .csv = c->logging.csv,
        .jsonl = c->logging.jsonl,
        .tensorboard_dir = c->logging.tensorboard_dir,
        .http_host = c->logging.http_addr,
        .http_port = (int)c->logging.http_port,
        .healthy_within_s = HEALTHY_WITHIN_S,
        .wall_us = wall_us,
        .steady_us = clock_monotonic_us,
    };
    run_plan_flops_per_token(c, model, s.facts.flops_per_token);
    return s;
}
