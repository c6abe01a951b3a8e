/* Keys that were given and do nothing under these settings: each is a warning. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"

#include <string.h>

static bool is_at_default(const struct config *config, int index)
{
    const struct config_key *key = config_key(index);
    struct agent_config plain = {0};
    struct error ignored; /* defaults are right */
    auto_arena struct arena *arena = arena_open();
    auto_str struct str now, before;
    str_init(&now, CONFIG_MAX_FILE_BYTES);
    str_init(&before, CONFIG_MAX_FILE_BYTES);
    (void)config_set_value(key, &plain, key->default_value, arena, &ignored);
    config_get_value(key, &plain, &before);
    config_get_value(key, &config->value, &now);
    return strcmp(str_text(&now), str_text(&before)) == 0;
}

bool config_is_set_by_user(const struct config *config, int index)
{
    return config->source[index] > SOURCE_PRESET && !config->is_resolved[index] &&
           !is_at_default(config, index);
}

static bool sets_dropout(const struct config *config)
{
    static const size_t fields[] = {KEY_AT(overrides.resid_pdrop), KEY_AT(overrides.embd_pdrop),
                                    KEY_AT(overrides.attn_pdrop)};
    for (size_t i = 0; i < array_length(fields); i++)
        if (config_is_set_by_user(config, config_key_at(fields[i])))
            return true;
    return config->value.model.dropout > 0;
}

/* AWS's sample passes dropouts to models that have none. */
static bool has_idle_dropout(const struct config *config, const struct agent_config *c)
{
    const struct model_family *family = config_family(c);
    return family && config_is_language(c) &&
           !config_model_has(family, config_key_at(KEY_AT(model.dropout))) && sets_dropout(config);
}

/* NEED_NOTHING: all are met. */
static enum config_need first_unmet(const struct config_key *key, const struct agent_config *c)
{
    for (int k = 0; k < CONFIG_MAX_NEEDS; k++)
        if (!config_need_is_met(key->needs[k], c))
            return key->needs[k];
    return NEED_NOTHING;
}

/* What has no effect under the settings `now`, but for what had none under `before`; NULL: there
 * was nothing before. */
static void add_unused(const struct config *config, const struct agent_config *now,
                       const struct agent_config *before, struct str *out)
{
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        enum config_need need = first_unmet(key, now);
        if (need == NEED_NOTHING || (before && first_unmet(key, before) != NEED_NOTHING) ||
            !config_is_set_by_user(config, i))
            continue;
        str_printf(out, "%s%s.%s is ignored: it needs ", out->length ? "; " : "", key->group,
                   key->name);
        config_need_describe(need, out);
    }
    if (has_idle_dropout(config, now) && !(before && has_idle_dropout(config, before)))
        str_printf(out, "%sdropout is ignored: the model has none", out->length ? "; " : "");
}

void config_warn_unused(struct config_parser *p)
{
    add_unused(p->config, &p->config->value, NULL, &p->warnings);
}

void config_warn_architecture(struct config *config, const struct architecture *a,
                              struct arena *arena)
{
    struct agent_config known = config->value;
    int head = a->family->get_head ? a->family->get_head(a) : 0;
    config_set_family(&known, a->family);
    known.model.head = a->family->heads[head].task;
    auto_str struct str warnings;
    str_init(&warnings, CONFIG_MAX_WARNING_BYTES);
    str_add(&warnings, config->warning);
    add_unused(config, &known, &config->value, &warnings);
    config->warning = arena_strdup(arena, str_text(&warnings));
}
