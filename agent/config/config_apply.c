/* One setting at a time: a refused flag, an alias, or a key of the table. */
#include "agent/config/config_parser.h"

#include "base/nearest.h"

#include <string.h>
#include <strings.h>

static int set(struct config_parser *p, int index, const char *text, enum config_source source,
               struct error *err)
{
    const struct config_key *key = config_key(index);
    if (config_set_value(key, &p->config->value, text, p->arena, err))
        return -1;
    p->config->source[index] = source;
    p->config->is_resolved[index] = false;
    if (key->offset == KEY_AT(model.type))
        p->model_type = arena_strdup(p->arena, text);
    if (key->offset == KEY_AT(schedule.min_lr) && config_override_min_lr_rate(p, source, err))
        return -1;
    if (key->offset == KEY_AT(schedule.type))
        p->scheduler = NULL;
    if (key->offset == KEY_AT(parallel.wrap_policy)) {
        p->wrap_policy = arena_strdup(p->arena, text);
        p->auto_wrap = false;
    }
    return 0;
}

/* *ret_done: there is nothing more to do with the setting. */
static int refuse(struct config_parser *p, const char *name, const char *value, bool *ret_done,
                  struct error *err)
{
    const char *given = value ? value : "true";
    bool ignored;
    for (int i = 0; i < config_refusal_count; i++) {
        const struct config_refusal *row = &config_refusals[i];
        if (!config_names_have(row->names, name, false) ||
            (row->values && !config_names_have(row->values, given, false)))
            continue;
        *ret_done = true;
        if (row->noop_values && config_names_have(row->noop_values, given, false))
            return 0;
        if (row->verdict == REFUSED)
            return error_set(err, ERR_CONFIG, "'%s': %s", given, row->why);
        if (row->verdict == IGNORED_SWITCH && !config_parse_bool(given, &ignored))
            return error_set(err, ERR_CONFIG, "'%s' is not true or false", given);
        config_warn(p, "%s is ignored: %s", name, row->why);
        return 0;
    }
    return 0;
}

/* Whether the row is for such a value. */
static bool is_when(const struct config_alias *row, const char *value)
{
    bool is_true = true;
    bool is_bool = !value || config_parse_bool(value, &is_true);
    if (!row->when)
        return true;
    if (strcmp(row->when, "text") == 0)
        return !is_bool;
    bool is_number = value && value[0] && strspn(value, "0123456789") == strlen(value);
    if (strcmp(row->when, "number") == 0)
        return is_number && !is_bool;
    if (strcmp(row->when, "word") == 0)
        return !is_number && !is_bool;
    if (value && strcmp(row->when, value) == 0)
        return true;
    if (is_bool)
        return strcmp(row->when, is_true ? "true" : "false") == 0;
    return strcasecmp(row->when, value) == 0;
}

static bool key_has_precedence(const struct config_parser *p, const struct config_alias *row,
                               int index, enum config_source source)
{
    auto_str struct str now;
    str_init(&now, CONFIG_MAX_FILE_BYTES);
    if (row->precedence == ALWAYS || p->config->source[index] < source)
        return false;
    config_get_value(config_key(index), &p->config->value, &now);
    return row->precedence == UNLESS_GIVEN || strcmp(str_text(&now), "no") != 0;
}

/* All that an alias of this name takes. */
static int refuse_value(const char *name, const char *value, struct error *err)
{
    auto_str struct str allowed;
    const char *before = "";
    str_init(&allowed, 512);
    for (int i = 0; i < config_alias_count; i++) {
        const struct config_alias *row = &config_aliases[i];
        if (!config_names_have(row->name, name, false) || strcmp(before, row->when) == 0)
            continue;
        before = row->when;
        str_printf(&allowed, " %s", strcmp(before, "number") == 0 ? "N (from 2)" : before);
    }
    return error_set(err, ERR_CONFIG, "'%s'%s is not one of:%s", value ? value : "true",
                     nearest_note(value ? value : "true", str_text(&allowed), " ").text,
                     str_text(&allowed));
}

static int expand(struct config_parser *p, const char *name, const char *value,
                  enum config_source source, bool *ret_done, struct error *err)
{
    bool is_name = false;
    for (int i = 0; i < config_alias_count; i++) {
        const struct config_alias *row = &config_aliases[i];
        if (!config_names_have(row->name, name, false))
            continue;
        is_name = true;
        if (!is_when(row, value))
            continue;
        *ret_done = true;
        const char *text = row->value ? row->value : value;
        int index;
        bool known;
        if (!text)
            return error_set(err, ERR_CONFIG, "needs a value");
        if (config_find_key(row->key, &index, &known, err))
            return -1;
        if (!key_has_precedence(p, row, index, source) && set(p, index, text, source, err))
            return -1;
        if (!row->value && config_key(index)->offset == KEY_AT(checkpoint.resume))
            p->checkpoint = NULL; /* --checkpoint said it before */
    }
    return is_name && !*ret_done ? refuse_value(name, value, err) : 0;
}

/* What the value means under that name of schedule.type, which may be cut short here, too. */
static const char *spelled(const char *name, const char *value)
{
    for (int i = 0; i < config_spelling_count; i++)
        if (config_names_have(config_spellings[i].names, name, true) &&
            strcasecmp(config_spellings[i].written, value) == 0)
            return config_spellings[i].means;
    return value;
}

int config_apply(struct config_parser *p, const char *name, const char *value,
                 enum config_source source, struct error *err)
{
    bool done = false, known = false;
    int index;
    if (config_names_have("fsdp", name, false))
        return config_apply_fsdp_words(p, value ? value : "", source, err);
    if (value && config_names_have("lr_scheduler_kwargs", name, false))
        return config_apply_schedule(p, value, source, err);
    if (value && config_names_have("checkpoint", name, false)) {
        p->checkpoint = strcmp(value, "None") == 0 ? NULL : arena_strdup(p->arena, value);
        p->checkpoint_source = source;
        return 0;
    }
    int result = config_apply_trainer(p, name, value, source, &done, err);
    if (done)
        return result;
    if (refuse(p, name, value, &done, err) || (!done && expand(p, name, value, source, &done, err)))
        return -1;
    if (config_names_have(CONFIG_FSDP_VERSION, name, false)) {
        p->is_fsdp2 = value && strcmp(value, "2") == 0;
        p->fsdp2_source = source;
    }
    if (done)
        return 0;
    if (config_find_key(name, &index, &known, err)) {
        err->code = known ? ERR_CONFIG : ERR_NOT_FOUND;
        return -1;
    }
    if (!value)
        value = config_key(index)->implied;
    if (!value)
        return error_set(err, ERR_CONFIG, "needs a value");
    if (config_key(index)->offset != KEY_AT(schedule.type))
        return set(p, index, value, source, err);
    if (set(p, index, spelled(name, value), source, err))
        return -1;
    p->scheduler = arena_strdup(p->arena, value);
    return 0;
}

static int apply_preset(struct config_parser *p, const char *name, struct error *err)
{
    auto_str struct str names;
    str_init(&names, 1024);
    for (int i = 0; i < config_preset_count; i++) {
        const struct config_preset *preset = &config_presets[i];
        str_printf(&names, "%s%s", i ? ", " : "", preset->name);
        if (strcasecmp(preset->name, name) != 0)
            continue;
        for (const char *const *line = preset->settings; *line; line++) {
            const char *equals = strchr(*line, '=');
            const char *key = arena_strndup(p->arena, *line, (size_t)(equals - *line));
            if (config_apply(p, key, equals + 1, SOURCE_PRESET, err))
                return error_wrap(err, "preset %s: %s", name, key);
            if (strcmp(key, "logging.style") == 0) /* sizes have none */
                p->trainer = preset->name;
        }
        const char *before = p->config->preset;
        p->config->preset =
            before[0] ? arena_printf(p->arena, "%s,%s", before, preset->name) : preset->name;
        return 0;
    }
    return error_set(err, ERR_CONFIG, "--preset: '%s'%s is not one of: %s", name,
                     nearest_note(name, str_text(&names), ", ").text, str_text(&names));
}

int config_apply_presets(struct config_parser *p, const char *names, struct error *err)
{
    char *rest = NULL;
    for (char *name = strtok_r(arena_strdup(p->arena, names), ", ", &rest); name;
         name = strtok_r(NULL, ", ", &rest))
        if (apply_preset(p, name, err))
            return -1;
    return 0;
}
