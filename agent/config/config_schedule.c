/* Learning-rate schedules of Transformers: their keyword arguments, and values that follow from
 * other keys. */
#include "agent/config/config_parser.h"

#include "agent/shard/schedule.h"

#include <string.h>
#include <strings.h>

bool config_is_launched(const struct config_parser *p)
{
    return p->trainer && strcmp(p->trainer, "accelerate") == 0;
}

static int refuse_both(struct error *err)
{
    return error_set(err, ERR_CONFIG,
                     "min_lr (lr_end) and min_lr_rate (min_lr_ratio): only one "
                     "can be given");
}

int config_override_min_lr_rate(struct config_parser *p, enum config_source source,
                                struct error *err)
{
    if (p->min_lr_rate >= 0 && p->min_lr_rate_source == source)
        return refuse_both(err);
    p->min_lr_rate = -1;
    return 0;
}

/* One keyword argument. */
static int apply_argument(struct config_parser *p, const char *name, const char *text,
                          enum config_source source, struct error *err)
{
    static const struct {
        const char *name, *key; /* NULL: a part of optimizer.lr */
    } rows[] = {
        {"num_cycles", "schedule.num_cycles"},
        {"min_lr", "schedule.min_lr"},
        {"lr_end", "schedule.min_lr"},
        {"power", "schedule.power"},
        {"num_decay_steps", "schedule.cooldown_steps"},
        {"min_lr_rate", NULL},
        {"min_lr_ratio", NULL},
    };
    size_t i = 0;
    while (i < array_length(rows) && strcmp(rows[i].name, name) != 0)
        i++;
    if (i == array_length(rows))
        return error_set(err, ERR_CONFIG,
                         "'%s' is not supported; num_cycles, min_lr, min_lr_rate, lr_end, power, "
                         "num_decay_steps and min_lr_ratio are",
                         name);
    if (rows[i].key)
        return config_apply(p, rows[i].key, text, source, err) ? error_wrap(err, "%s", name) : 0;
    if (!str_to_double(text, &p->min_lr_rate) || p->min_lr_rate < 0 || p->min_lr_rate > 1)
        return error_set(err, ERR_CONFIG, "%s: '%s' is not a number from 0 to 1", name, text);
    p->min_lr_rate_source = source;
    if (SOURCE_OF(schedule.min_lr) == source)
        return refuse_both(err);
    return 0;
}

int config_apply_schedule(struct config_parser *p, const char *text, enum config_source source,
                          struct error *err)
{
    const struct config_flag *arguments;
    int count;
    if (config_read_mapping(p, text, &arguments, &count, err))
        return -1;
    for (int i = 0; i < count; i++)
        if (apply_argument(p, arguments[i].name, arguments[i].value, source, err))
            return -1;
    return 0;
}

/* Transformers' Trainer: "max_steps overrides num_train_epochs". */
static void finish_steps(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    if (!config_is_launched(p) || c->schedule.max_steps == 0)
        return;
    if (SOURCE_OF(schedule.epochs) > SOURCE_PRESET && c->schedule.epochs > 0)
        config_warn(p, "schedule.num_train_epochs is ignored: schedule.max_steps decides, as in "
                       "Trainer");
    c->schedule.epochs = 0;
    p->config->source[config_key_at(KEY_AT(schedule.epochs))] = SOURCE_OF(schedule.max_steps);
}

int config_finish_schedule(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    const char *written = p->scheduler ? p->scheduler : "";
    finish_steps(p);
    if (SOURCE_OF(schedule.warmup_steps) > SOURCE_OF(schedule.warmup_ratio))
        c->schedule.warmup_ratio = 0;
    else if (SOURCE_OF(schedule.warmup_ratio) > SOURCE_OF(schedule.warmup_steps))
        c->schedule.warmup_steps = 0;
    if (p->min_lr_rate >= 0)
        c->schedule.min_lr = p->min_lr_rate * c->optimizer.lr;
    if (c->schedule.type == SCHEDULE_HF_POLYNOMIAL && SOURCE_OF(schedule.min_lr) == SOURCE_DEFAULT)
        c->schedule.min_lr = 1e-7;
    if (strcasecmp(written, "cosine_with_min_lr") == 0 && c->schedule.min_lr == 0)
        return error_set(err, ERR_CONFIG,
                         "cosine_with_min_lr needs schedule.min_lr above 0 (or min_lr or "
                         "min_lr_rate in --lr_scheduler_kwargs)");
    if (strcasecmp(written, "warmup_stable_decay") == 0 && c->schedule.cooldown_steps == 0)
        return error_set(err, ERR_CONFIG,
                         "warmup_stable_decay needs schedule.cooldown_steps above 0 "
                         "(num_decay_steps in --lr_scheduler_kwargs)");
    return 0;
}
