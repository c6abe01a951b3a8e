/* Flags of Transformers' Trainer that override other keys in any order. They are kept until all
 * flags have been read. */
#include "agent/config/config_parser.h"

#include "base/nearest.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

static const char *const strategies[] = {"no", "epoch", "steps"};
enum { SAVE_NO, SAVE_EPOCH, SAVE_STEPS };

enum { REPORT_TENSORBOARD = 1, REPORT_WANDB = 2 };

/* The index of `value` among the words; NULL is a flag without one. */
static int find_word(const char *value, const char *const *words, size_t count, int *ret_index,
                     struct error *err)
{
    auto_str struct str allowed;
    str_init(&allowed, 512);
    for (size_t i = 0; i < count; i++) {
        if (value && strcasecmp(words[i], value) == 0) {
            *ret_index = (int)i;
            return 0;
        }
        str_printf(&allowed, " %s", words[i]);
    }
    return error_set(err, ERR_CONFIG, "'%s'%s is not one of:%s", value ? value : "true",
                     nearest_note(value ? value : "true", str_text(&allowed), " ").text,
                     str_text(&allowed));
}

/* The list of report_to, as words, with commas or as Python writes it. */
static int apply_reports(struct config_parser *p, const char *value, struct error *err)
{
    static const char *const words[] = {"tensorboard", "wandb", "all", "none"};
    static const unsigned means[] = {REPORT_TENSORBOARD, REPORT_WANDB,
                                     REPORT_TENSORBOARD | REPORT_WANDB, 0};
    static const char separators[] = ", []'\"";
    char *rest = NULL, *text = arena_strdup(p->arena, value ? value : "true");
    p->reports = 0;
    for (char *one = strtok_r(text, separators, &rest); one;
         one = strtok_r(NULL, separators, &rest)) {
        int which = 0;
        if (find_word(one, words, array_length(words), &which, err))
            return -1;
        p->reports |= means[which];
    }
    return 0;
}

/* Transformers 5 takes a number below 1 for a part of all steps, which has its own key here. */
static bool is_part(const char *value)
{
    double part;
    return value && str_to_double(value, &part) && part > 0 && part < 1;
}

int config_apply_trainer(struct config_parser *p, const char *name, const char *value,
                         enum config_source source, bool *ret_done, struct error *err)
{
    *ret_done = true;
    if (config_names_have(CONFIG_LISTS, name, false)) {
        p->has_reports = true;
        p->reports_source = source;
        return apply_reports(p, value, err);
    }
    if (config_names_have("warmup_steps", name, false) && is_part(value))
        return config_apply(p, "schedule.warmup_ratio", value, source, err);
    *ret_done = config_names_have("save_strategy", name, false);
    if (!*ret_done)
        return 0;
    p->save_strategy_source = source;
    return find_word(value, strategies, array_length(strategies), &p->save_strategy, err);
}

/* Trainer reads save_steps under "steps" alone. */
static void finish_saving(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    bool is_given = config_is_given(p->config, &c->checkpoint.save_steps);
    if (p->save_strategy < 0 || (p->save_strategy == SAVE_STEPS && is_given))
        return;
    int64_t steps = p->save_strategy == SAVE_NO      ? (int64_t)1e12
                    : p->save_strategy == SAVE_EPOCH ? 0
                                                     : 500;
    if (is_given && c->checkpoint.save_steps != steps)
        config_add_headline(p->config, p->arena,
                            "checkpoint.save_steps=%lld is ignored: save_strategy=%s decides, as "
                            "in Trainer",
                            (long long)c->checkpoint.save_steps, strategies[p->save_strategy]);
    int index = config_key_at(KEY_AT(checkpoint.save_steps));
    c->checkpoint.save_steps = steps;
    p->config->source[index] = p->save_strategy_source;
    p->config->is_resolved[index] = false;
}

/* report_to is the whole list: logging_dir only says where TensorBoard's files go if it is on it.
 * A key of a stronger source is heard, as is one that turns off what the list names. */
static void finish_reports(struct config_parser *p)
{
    static const struct {
        unsigned bit;
        size_t field;
        const char *name, *on, *off;
    } rows[] = {
        {REPORT_TENSORBOARD, KEY_AT(logging.tensorboard_dir), "tensorboard", "./tensorboard_logs",
         ""},
        {REPORT_WANDB, KEY_AT(logging.wandb), "wandb", "offline", "off"},
    };
    struct error ignored; /* both values are right */
    for (size_t i = 0; p->has_reports && i < array_length(rows); i++) {
        int index = config_key_at(rows[i].field);
        const struct config_key *key = config_key(index);
        enum config_source source = p->config->source[index];
        auto_str struct str now;
        str_init(&now, CONFIG_MAX_FILE_BYTES);
        config_get_value(key, &p->config->value, &now);
        bool is_on = strcmp(str_text(&now), rows[i].off) != 0;
        bool is_named = (p->reports & rows[i].bit) != 0;
        if (is_named && !is_on && source >= p->reports_source && !p->config->is_resolved[index])
            config_add_headline(
                p->config, p->arena, "report_to names %s, but %s.%s=%s turns it off, and decides",
                rows[i].name, key->group, key->name, rows[i].off[0] ? rows[i].off : "''");
        if (source > p->reports_source || (is_named && (is_on || source == p->reports_source)) ||
            (!is_named && !is_on && p->reports != 0))
            continue;
        if (!is_named && is_on && source > SOURCE_PRESET && !p->config->is_resolved[index])
            config_add_headline(p->config, p->arena,
                                "%s.%s=%s is ignored: report_to does not name %s, and decides",
                                key->group, key->name, str_text(&now), rows[i].name);
        (void)config_set_value(key, &p->config->value, is_named ? rows[i].on : rows[i].off,
                               p->arena, &ignored);
        p->config->source[index] = p->reports_source;
    }
}

/* As in Trainer. */
static void finish_evaluation(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    if (c->eval.strategy != EVAL_STEPS || c->logging.steps <= 0 ||
        config_is_given(p->config, &c->eval.steps) ||
        !config_is_given(p->config, &c->logging.steps))
        return;
    c->eval.steps = c->logging.steps;
    config_add_headline(p->config, p->arena, "eval.eval_steps=%lld, as logging.logging_steps",
                        (long long)c->eval.steps);
}

void config_finish_trainer(struct config_parser *p)
{
    finish_evaluation(p);
    finish_reports(p);
    finish_saving(p);
}
