/* The sources in their order: defaults, presets, files, environment, flags. */
#include "agent/config/config.h"

#include "agent/config/config_parser.h"
#include "base/nearest.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void config_warn(struct config_parser *p, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str_printf(&p->warnings, "%s%s", p->warnings.length ? "; " : "", text);
}

void config_add_headline(struct config *config, struct arena *arena, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    config->headline = arena_printf(arena, "%s%s\n", config->headline, text);
}

void config_notices(const struct config *config, void (*report)(void *ctx, const char *line),
                    void *ctx)
{
    auto_free char *lines = xstrdup(config->headline);
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        report(ctx, line);
    if (config->warning[0])
        report(ctx, config->warning);
}

/* Flags that are no keys: they choose what is read before the keys. */
static bool is_special(const struct config_flag *flag)
{
    return config_names_have("help version preset config config_file fsdp_config", flag->name,
                             false);
}

static int read_specials(struct config_parser *p, struct error *err)
{
    for (int i = 0; i < p->flag_count; i++) {
        const struct config_flag *flag = &p->flags[i];
        if (strcmp(flag->name, "help") == 0)
            p->config->help = !flag->value || strcmp(flag->value, "markdown") != 0;
        if (strcmp(flag->name, "help") == 0)
            p->config->help_markdown = !p->config->help;
        else if (strcmp(flag->name, "version") == 0)
            p->config->version = true;
        else if (is_special(flag) && !flag->value)
            return error_set(err, ERR_CONFIG, "--%s needs a value", flag->name);
        else if (config_names_have("config config_file fsdp_config", flag->name, false) &&
                 config_open_file(p, flag->name, flag->value, err))
            return -1;
    }
    return 0;
}

/* All that are named, the weaker source first. */
static int apply_all_presets(struct config_parser *p, const char *environment, struct error *err)
{
    const char *launcher = p->lookup(p->lookup_ctx, "ACCELERATE_USE_FSDP");
    bool launched = false;
    if ((launcher && config_parse_bool(launcher, &launched) && launched &&
         config_apply_presets(p, "accelerate", err)) ||
        config_apply_file_presets(p, err) ||
        (environment && config_apply_presets(p, environment, err)))
        return -1;
    for (int i = 0; i < p->flag_count; i++)
        if (strcmp(p->flags[i].name, "preset") == 0 &&
            config_apply_presets(p, p->flags[i].value, err))
            return -1;
    p->preset_optimizer = p->config->value.optimizer.name;
    return 0;
}

static int apply_variable(struct config_parser *p, int index, const char *name, getenv_fn *lookup,
                          void *ctx, struct error *err)
{
    const struct config_key *key = config_key(index);
    const char *text = lookup(ctx, name);
    /* An empty variable counts as unset, as in a shell's ${X:-}; only a text may be meant to be
     * empty. */
    if (!text || (!*text && key->type != TYPE_TEXT))
        return 0;
    const char *full = arena_printf(p->arena, "%s.%s", key->group, key->name);
    if (config_apply(p, full, text, SOURCE_ENVIRONMENT, err))
        return error_wrap(err, "environment variable %s", name);
    return 0;
}

/* Variables that are no key's: what accelerate's launcher passes to its processes by them, and what
 * is reported as ignored. A variable that is a key's says more of the same
 * (FSDP_SHARDING_STRATEGY), so these come first. */
static const struct {
    const char *variable, *flag;
} launcher_variables[] = {
    {"FSDP_VERSION", "fsdp_version"},
    {"FSDP_RESHARD_AFTER_FORWARD", "fsdp_reshard_after_forward"},
    {"FSDP_USE_ORIG_PARAMS", "fsdp_use_orig_params"},
    {"FSDP_IGNORED_MODULES", "fsdp_ignored_modules"},
    {"ACCELERATE_USE_CPU", "use_cpu"},
    {"ACCELERATE_DEBUG_MODE", "debug"},
    {"ACCELERATE_USE_XLA", "xla"},
    {"ACCELERATE_USE_DEEPSPEED", "use_deepspeed"},
    {"ACCELERATE_USE_MEGATRON_LM", "use_megatron_lm"},
    {"ACCELERATE_DYNAMO_BACKEND", "dynamo_backend"},
    {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"},
    {"HF_DATASETS_CACHE", "HF_DATASETS_CACHE"},
};

static int apply_launcher(struct config_parser *p, getenv_fn *lookup, void *ctx, struct error *err)
{
    for (size_t i = 0; i < array_length(launcher_variables); i++) {
        const char *name = launcher_variables[i].variable, *text = lookup(ctx, name);
        if (text && *text &&
            config_apply(p, launcher_variables[i].flag, text, SOURCE_ENVIRONMENT, err))
            return error_wrap(err, "environment variable %s", name);
    }
    return 0;
}

/* "AGENT_OPTIMIZER_LR"; with the name "" the beginning that a group's have in common. */
static const char *variable_of(struct arena *arena, const char *group, const char *name)
{
    char *variable = arena_printf(arena, "AGENT_%s_%s", group, name);
    for (char *c = variable; *c; c++)
        *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    return variable;
}

/* Other trainers' variables first: ours are the stronger. */
static int apply_environment(struct config_parser *p, getenv_fn *lookup, void *ctx,
                             struct error *err)
{
    if (apply_launcher(p, lookup, ctx, err))
        return -1;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        char *rest = NULL,
             *names = arena_strdup(p->arena, key->environment ? key->environment : "");
        for (char *one = strtok_r(names, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
            if (apply_variable(p, i, one, lookup, ctx, err))
                return -1;
        if (apply_variable(p, i, variable_of(p->arena, key->group, key->name), lookup, ctx, err))
            return -1;
    }
    return 0;
}

/* "--data.rot": only who knows our groups writes one, or almost one, before a name. */
static bool has_our_group(struct arena *arena, const char *name)
{
    const char *dot = strchr(name, '.');
    const char *group = arena_strndup(arena, name, dot ? (size_t)(dot - name) : 0);
    for (int i = 0; dot && i < config_key_count(); i++) {
        const char *ours = config_key(i)->group;
        const char *first = arena_strndup(arena, ours, strcspn(ours, "."));
        int limit = (int)strlen(first) / 4;
        if (nearest_distance(group, first, limit) <= limit)
            return true;
    }
    return false;
}

static int apply_flags(struct config_parser *p, struct error *err)
{
    for (int i = 0; i < p->flag_count; i++) {
        const struct config_flag *flag = &p->flags[i];
        if (is_special(flag) || config_apply(p, flag->name, flag->value, SOURCE_FLAG, err) == 0)
            continue;
        if (err->code != ERR_NOT_FOUND)
            return error_wrap(err, "--%s", flag->name);
        struct config_nearest near;
        config_find_nearest(flag->name, &near);
        bool is_mistake = near.is_slip || has_our_group(p->arena, flag->name);
        struct str *names = is_mistake ? &p->mistaken : &p->unknown;
        str_printf(names, "%s--%s", names->length ? ", " : "", flag->name);
        if (near.count > 0)
            str_printf(names, " (the nearest %s %s)", near.count > 1 ? "are" : "is", near.names);
    }
    return 0;
}

static int report_unknown(struct config_parser *p, struct error *err)
{
    bool strict = p->config->value.runtime.strict;
    if (strict && p->unknown.length)
        str_printf(&p->mistaken, "%s%s", p->mistaken.length ? ", " : "", str_text(&p->unknown));
    const char *names = str_text(&p->mistaken);
    if (p->unknown.length && !strict)
        config_add_headline(p->config, p->arena, "unknown flags are ignored: %s",
                            str_text(&p->unknown));
    return p->mistaken.length ? error_set(err, ERR_CONFIG, "unknown flag%s %s; --help lists all",
                                          strchr(names, ',') ? "s" : "", names)
                              : 0;
}

static int apply_sources(struct config_parser *p, int argc, const char *const *argv,
                         getenv_fn *lookup, void *ctx, struct error *err)
{
    for (int i = 0; i < config_key_count(); i++)
        if (config_set_value(config_key(i), &p->config->value, config_key(i)->default_value,
                             p->arena, err))
            return error_wrap(err, "default of %s", config_key(i)->name);
    if (config_read_words(p, argc, argv, err) || read_specials(p, err) ||
        apply_all_presets(p, lookup(ctx, "AGENT_PRESET"), err) || config_apply_files(p, err) ||
        apply_environment(p, lookup, ctx, err) || apply_flags(p, err) || report_unknown(p, err))
        return -1;
    return config_finish(p, err);
}

static int key_of(const struct config *config, const void *field)
{
    return config_key_at((size_t)((const char *)field - (const char *)&config->value));
}

enum config_source config_source_of(const struct config *config, const void *field)
{
    return config->source[key_of(config, field)];
}

bool config_is_given(const struct config *config, const void *field)
{
    int i = key_of(config, field);
    return config->source[i] > SOURCE_PRESET && !config->is_resolved[i];
}

/* Whether the variable has the key's name behind almost its group's. */
static bool is_almost(struct arena *arena, const struct config_key *key, const char *variable,
                      size_t length)
{
    const char *begin = variable + strlen("AGENT_"), *end = variable_of(arena, "", key->name);
    end += strlen("AGENT_"); /* with the '_' before it */
    if (length <= strlen("AGENT_") + strlen(end) ||
        strncmp(variable + length - strlen(end), end, strlen(end)) != 0)
        return false;
    const char *group = arena_strndup(arena, begin, length - strlen("AGENT_") - strlen(end));
    return nearest_distance(group, key->group, 2) <= 2;
}

/* Whether the list, separated by spaces, has a variable whose name is of `length` bytes. */
static bool has_variable(const char *names, const char *variable, size_t length)
{
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        if (n == length && memcmp(names, variable, length) == 0)
            return true;
    }
    return false;
}

/* Whether a variable (its name is of `length` bytes) looks like a key's, and is none's. */
static bool is_mistaken(struct arena *arena, const char *variable, size_t length)
{
    bool looks_ours = false;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        if (has_variable(variable_of(arena, key->group, key->name), variable, length) ||
            (key->environment && has_variable(key->environment, variable, length)))
            return false;
        looks_ours |= str_starts_with(variable, variable_of(arena, key->group, "")) ||
                      is_almost(arena, key, variable, length);
    }
    return looks_ours;
}

/* All variables that are read, separated by spaces. */
static void list_variables(const char *others, struct arena *arena, struct str *out)
{
    str_add(out, others);
    for (size_t i = 0; i < array_length(launcher_variables); i++)
        str_printf(out, " %s", launcher_variables[i].variable);
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        str_printf(out, " %s %s", variable_of(arena, key->group, key->name),
                   key->environment ? key->environment : "");
    }
}

/* Only prefixes that belong to the launchers: a pod has variables of other programs, too, which may
 * resemble ours (DATAPATH and DATA_PATH). */
static bool has_launcher_prefix(const char *variable)
{
    static const char *const prefixes[] = {"PET_", "FSDP_", "ACCELERATE_", "WANDB_"};
    for (size_t i = 0; i < array_length(prefixes); i++)
        if (str_starts_with(variable, prefixes[i]))
            return true;
    return false;
}

static bool is_slip(const char *variable, const struct nearest_word *near, const char *known)
{
    return near->is_slip && !config_names_have(known, variable, false);
}

int config_check_variables(char *const *variables, const char *others, struct arena *arena,
                           struct config *config, struct error *err)
{
    auto_str struct str names, known;
    str_init(&names, 2048);
    str_init(&known, CONFIG_MAX_FILE_BYTES);
    list_variables(others, arena, &known);
    for (; *variables; variables++) {
        const char *name = arena_strndup(arena, *variables, strcspn(*variables, "="));
        bool is_ours = str_starts_with(name, "AGENT_");
        if (!is_ours && !has_launcher_prefix(name)) /* a pod may have thousands, of its services */
            continue;
        struct nearest_word near = nearest_word(name, str_text(&known), " ");
        if (is_ours ? !is_mistaken(arena, name, strlen(name))
                    : !is_slip(name, &near, str_text(&known)))
            continue;
        str_printf(&names, "%s%s", names.length ? ", " : "", name);
        if (near.is_slip)
            str_printf(&names, " (the nearest is %s)", near.text);
    }
    if (!names.length)
        return 0;
    if (config->value.runtime.strict)
        return error_set(err, ERR_CONFIG, "environment: unknown variables %s; --help lists all",
                         str_text(&names));
    config_add_headline(config, arena, "unknown variables are ignored: %s", str_text(&names));
    return 0;
}

int config_parse(int argc, const char *const *argv, getenv_fn *lookup, void *lookup_ctx,
                 struct arena *arena, struct config *ret_config, struct error *err)
{
    struct config config = {
        .preset = "", .script_notice = "", .headline = "", .warning = "", .no_tokenizer = ""};
    struct config_parser *p = arena_new(arena, struct config_parser);
    assert(config_key_count() <= CONFIG_MAX_KEYS);
    p->arena = arena;
    p->config = &config;
    p->lookup = lookup;
    p->lookup_ctx = lookup_ctx;
    p->min_lr_rate = -1;
    p->save_strategy = -1;
    str_init(&p->unknown, 1024);
    str_init(&p->mistaken, 1024);
    str_init(&p->warnings, CONFIG_MAX_WARNING_BYTES);
    int result = apply_sources(p, argc, argv, lookup, lookup_ctx, err);
    config.warning = arena_strdup(arena, str_text(&p->warnings));
    *ret_config = config;
    config_close_files(p);
    str_free(&p->warnings);
    str_free(&p->unknown);
    str_free(&p->mistaken);
    return result;
}
