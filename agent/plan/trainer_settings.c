#include "agent/plan/trainer_settings.h"

#include <math.h>
#include <regex.h>
#include <string.h>

enum dtype trainer_dtype(const struct agent_config *c)
{
    return c->precision.mixed == PRECISION_FP32 ? DTYPE_F32 : DTYPE_BF16;
}

bool trainer_is_fp8(const struct agent_config *c)
{
    return c->precision.fp8 && config_is_language(c);
}

static bool is_bf16(const struct agent_config *c)
{
    return trainer_dtype(c) == DTYPE_BF16;
}

/* fp32 in bf16's place, or bf16 in fp8's, would be another run than the one that was asked for. */
int trainer_check_capability(const struct agent_config *c, const char *gpu, int capability,
                             struct error *err)
{
    static const struct {
        bool (*is_asked)(const struct agent_config *c);
        int oldest;
        const char *name, *gpus, *mend;
    } rows[] = {
        {is_bf16, DEVICE_BF16_CAPABILITY, "bf16", "",
         "precision.mixed_precision=no, and it trains in fp32"},
        {trainer_is_fp8, DEVICE_FP8_CAPABILITY, "fp8", " (L4, L40S, H100 and newer)",
         "precision.fp8=false, and it multiplies bf16"},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (capability > 0 && capability < rows[i].oldest && rows[i].is_asked(c))
            return error_set(err, ERR_UNSUPPORTED,
                             "%s has compute capability %d.%d, and %s needs %d.%d%s: set %s", gpu,
                             capability / 10, capability % 10, rows[i].name, rows[i].oldest / 10,
                             rows[i].oldest % 10, rows[i].gpus, rows[i].mend);
    return 0;
}

enum dtype trainer_slice_dtype(const struct agent_config *c)
{
    return c->precision.mixed == PRECISION_BF16_TRUE ? DTYPE_BF16 : DTYPE_F32;
}

struct shard_config trainer_shard_config(const struct agent_config *c, enum shard_strategy strategy,
                                         int group_size)
{
    return (struct shard_config){
        .strategy = strategy,
        .shard_group_size = group_size,
        .backward_prefetch = (enum backward_prefetch)c->parallel.backward_prefetch,
        .forward_prefetch = c->parallel.forward_prefetch,
        .limit_all_gathers = c->parallel.limit_all_gathers,
        .accumulate_sharded = c->optimizer.accumulation_sync == ACCUMULATE_EVERY,
        .param_dtype = trainer_dtype(c),
        .gathers_fp8 = trainer_is_fp8(c),
        .slice_dtype = trainer_slice_dtype(c),
        .reduce_dtype = c->precision.reduce_dtype == STATE_BF16 ? DTYPE_BF16 : DTYPE_F32,
    };
}

/* ---- the optimizer, and which parameters decay ---- */

enum { MAX_EXCLUDES = 16 };

struct decay_rule {
    bool matrices_only; /* "norm_bias" */
    regex_t excludes[MAX_EXCLUDES];
    int count;
};

static bool decays(void *ctx, const struct param *p)
{
    const struct decay_rule *rule = ctx;
    /* as Trainer, which goes by names: T5's relative_attention_bias is a matrix */
    if (rule->matrices_only && (!optim_decays_matrices(NULL, p) || strstr(p->name, "bias")))
        return false;
    for (int i = 0; i < rule->count; i++)
        if (regexec(&rule->excludes[i], p->name, 0, NULL, 0) == 0)
            return false;
    return true;
}

static int read_excludes(char *list, struct decay_rule *rule, struct error *err)
{
    char *rest = NULL;
    for (char *text = strtok_r(list, ", ", &rest); text; text = strtok_r(NULL, ", ", &rest)) {
        if (strcmp(text, "norm_bias") == 0) {
            rule->matrices_only = true;
            continue;
        }
        if (rule->count == MAX_EXCLUDES)
            return error_set(err, ERR_CONFIG, "optimizer.decay_exclude: more than %d expressions",
                             MAX_EXCLUDES);
        if (regcomp(&rule->excludes[rule->count], text, REG_EXTENDED | REG_NOSUB))
            return error_set(err, ERR_CONFIG,
                             "optimizer.decay_exclude: '%s' is no regular expression", text);
        rule->count++;
    }
    return 0;
}

int trainer_decay_rule(const struct agent_config *c, struct arena *arena,
                       struct decay_rule **ret_rule, struct error *err)
{
    struct decay_rule *rule = NULL;
    if (c->optimizer.decay_exclude[0])
        rule = arena_new(arena, struct decay_rule);
    *ret_rule = rule;
    return rule ? read_excludes(arena_strdup(arena, c->optimizer.decay_exclude), rule, err) : 0;
}

void trainer_decay_rule_free(struct decay_rule *rule)
{
    for (int i = 0; rule && i < rule->count; i++)
        regfree(&rule->excludes[i]);
}

struct optim_config trainer_optim_config(const struct agent_config *c, struct decay_rule *rule)
{
    return (struct optim_config){
        .kind = optim_kind(c->optimizer.name),
        .rho = (float)c->optimizer.rho,
        .momentum = (float)c->optimizer.momentum,
        .nesterov = c->optimizer.nesterov,
        .beta1 = (float)c->optimizer.beta1,
        .beta2 = (float)c->optimizer.beta2,
        .eps = (float)c->optimizer.eps,
        .weight_decay = (float)c->optimizer.weight_decay,
        .decays = rule ? decays : NULL,
        .decays_ctx = rule,
        .grad_clip = (float)c->optimizer.grad_clip,
        .seed = (uint64_t)c->runtime.seed,
    };
}

/* ---- the learning rate ---- */

int64_t trainer_epochs(const struct agent_config *c)
{
    return (int64_t)ceil(c->schedule.epochs);
}

int trainer_schedule(const struct agent_config *c, int64_t steps, struct schedule *ret_schedule,
                     struct error *err)
{
    *ret_schedule = (struct schedule){
        .type = (enum schedule_type)c->schedule.type,
        .lr = c->optimizer.lr,
        .min_lr = c->schedule.min_lr,
        .decay_steps = c->schedule.decay_steps > 0 ? c->schedule.decay_steps : steps,
        .warmup_steps = c->schedule.warmup_steps,
        .warmup_ratio = c->schedule.warmup_ratio,
        .plateau_ratio = c->schedule.plateau_ratio,
        .num_cycles = c->schedule.num_cycles,
        .cooldown_steps = c->schedule.cooldown_steps,
        .power = c->schedule.power,
        .gamma = c->schedule.gamma,
        .step_size = c->schedule.step_size,
        .unit = (enum schedule_unit)c->schedule.unit,
    };
    if (schedule_has_end(ret_schedule->type) && ret_schedule->decay_steps <= 0)
        return error_set(err, ERR_CONFIG,
                         "schedule.type: how many steps the data makes is not known before its "
                         "end: give schedule.max_steps or schedule.decay_steps, or write the data "
                         "as ids, whose number is known (shoal tokenize --out FILE)");
    return 0;
}

/* ---- memory for time ---- */

enum tape_checkpointing trainer_checkpointing(const struct agent_config *c)
{
    switch ((enum config_recompute)c->memory.activation_checkpointing) {
    case RECOMPUTE_FULL:
        return TAPE_CHECKPOINTING_FULL;
    case RECOMPUTE_SELECTIVE:
        return TAPE_CHECKPOINTING_SELECTIVE;
    case RECOMPUTE_NONE:
        break;
    }
    return TAPE_CHECKPOINTING_NONE;
}
