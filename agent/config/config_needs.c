#include "agent/config/config_needs.h"

#include "agent/config/config_keys.h"
#include "agent/config/config_model.h"
#include "agent/dataset/token_dataset.h"
#include "agent/health/hang_action.h"
#include "agent/models/families.h"
#include "agent/shard/optim_kind.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"

#include <string.h>

/* Sets of what a model may learn. */
#define LEARNS(task) (1u << MODEL_##task)
#define SEQUENCES    (LEARNS(MASKED) | LEARNS(PRETRAINING) | LEARNS(CLASSES))

/* All that are possible before a config.json is read. */
static unsigned learns(const struct agent_config *c)
{
    const struct model_family *family = config_family(c);
    unsigned tasks = 0;
    if (family && c->model.head != HEAD_AUTO)
        return 1u << c->model.head;
    for (int h = 0; family && h < family->head_count; h++)
        tasks |= 1u << family->heads[h].task;
    return family ? tasks : ~0u;
}

static bool reads_ids(const struct agent_config *c)
{
    return c->data.source.format == TOKENS_LLMC || c->data.source.format == TOKENS_MEGATRON;
}

/* Whether the optimizer reads what `use` stands for. */
static bool reads(const struct agent_config *c, enum optim_use use)
{
    return optim_kind(c->optimizer.name)->uses & use;
}

/* Whether the rate comes to be below the highest by what is not warm-up. */
static bool falls(const struct agent_config *c)
{
    return c->schedule.type != SCHEDULE_STEP_LR && c->schedule.type != SCHEDULE_CONSTANT &&
           c->schedule.type != SCHEDULE_HF_CONSTANT &&
           c->schedule.type != SCHEDULE_HF_CONSTANT_WITH_WARMUP;
}

/* Whether the rate depends on how many steps the schedule spans. */
static bool spans(const struct agent_config *c)
{
    switch ((enum schedule_type)c->schedule.type) {
    case SCHEDULE_STEP_LR:
    case SCHEDULE_HF_CONSTANT:
        return false;
    case SCHEDULE_CONSTANT: /* AnnealingLR's warm-up ends that long before the end */
        return c->schedule.warmup_ratio > 0 || c->schedule.warmup_steps > 0;
    case SCHEDULE_HF_CONSTANT_WITH_WARMUP:
    case SCHEDULE_HF_INVERSE_SQRT:
        return c->schedule.warmup_ratio > 0;
    default:
        return true;
    }
}

static bool has_dropout(const struct agent_config *c)
{
    const struct model_family *family = config_family(c);
    return !family || !config_is_language(c) ||
           config_model_has(family, config_key_at(KEY_AT(model.dropout)));
}

static bool may_have_gpus(const struct agent_config *c)
{
    return strcmp(c->runtime.device, "cpu") != 0;
}

static bool restarts(const struct agent_config *c)
{
    return c->runtime.max_restarts > 0 ||
           (c->runtime.max_restarts < 0 && c->runtime.restarts_by_default);
}

#define NEED(need, text, expression)                                                               \
    static bool is_met_##need(const struct agent_config *c)                                        \
    {                                                                                              \
        return expression;                                                                         \
    }
#define OPTIM(need, use) NEED(need, , reads(c, use))
CONFIG_NEEDS(NEED, OPTIM)
#undef NEED
#undef OPTIM

static const struct {
    bool (*is_met)(const struct agent_config *c);
    const char *text;   /* NULL: the optimizers that have `use` */
    enum optim_use use; /* 0: none */
} rows[] = {
#define NEED(need, text, expression) [NEED_##need] = {is_met_##need, text, 0},
#define OPTIM(need, use)             [NEED_##need] = {is_met_##need, NULL, use},
    CONFIG_NEEDS(NEED, OPTIM)
#undef NEED
#undef OPTIM
};

bool config_need_is_met(enum config_need need, const struct agent_config *c)
{
    return need == NEED_NOTHING || rows[need].is_met(c);
}

bool config_need_optimizers(enum config_need need, struct str *out)
{
    if (!rows[need].use)
        return false;
    optim_users(rows[need].use, out);
    return true;
}

void config_need_describe(enum config_need need, struct str *out)
{
    if (rows[need].text) {
        str_add(out, rows[need].text);
        return;
    }
    str_add(out, "optimizer.name=");
    config_need_optimizers(need, out);
}
