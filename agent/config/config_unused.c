/* Keys that were given and do nothing under these settings: each is a warning. */
#include "agent/config/config_parser.h"

#include <string.h>

static bool is_at_default(const struct config_parser *p, int index)
{
    const struct config_key *key = config_key(index);
    struct agent_config plain = {0};
    struct error ignored; /* defaults are right */
    auto_str struct str now, before;
    str_init(&now, CONFIG_MAX_FILE_BYTES);
    str_init(&before, CONFIG_MAX_FILE_BYTES);
    (void)config_set_value(key, &plain, key->default_value, p->arena, &ignored);
    config_get_value(key, &plain, &before);
    config_get_value(key, &p->config->value, &now);
    return strcmp(str_text(&now), str_text(&before)) == 0;
}

bool config_is_set_by_user(const struct config_parser *p, int index)
{
    return p->config->source[index] > SOURCE_PRESET && !p->config->is_resolved[index] &&
           !is_at_default(p, index);
}

void config_warn_unused(struct config_parser *p)
{
    for (int i = 0; i < config_key_count(); i++)
        for (int k = 0; k < CONFIG_MAX_NEEDS; k++) {
            const struct config_key *key = config_key(i);
            if (config_need_is_met(key->needs[k], &p->config->value) ||
                !config_is_set_by_user(p, i))
                continue;
            auto_str struct str text;
            str_init(&text, 256);
            config_need_describe(key->needs[k], &text);
            config_warn(p, "%s.%s is ignored: it needs %s", key->group, key->name, str_text(&text));
        }
}
