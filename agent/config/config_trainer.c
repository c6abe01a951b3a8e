/* Flags of Transformers' Trainer that decide what others come to, whichever comes first: they are
 * kept until all have been read. */
#include "agent/config/config_parser.h"

#include <strings.h>

static const char *const strategies[] = {"no", "epoch", "steps"};
enum { SAVE_NO, SAVE_EPOCH, SAVE_STEPS };

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
    return error_set(err, ERR_CONFIG, "'%s' is not one of:%s", value ? value : "true",
                     str_text(&allowed));
}

int config_apply_trainer(struct config_parser *p, const char *name, const char *value,
                         enum config_source source, bool *ret_done, struct error *err)
{
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

void config_finish_trainer(struct config_parser *p)
{
    finish_saving(p);
}
