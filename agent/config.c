/* The sources in their order: defaults, preset, files, environment, flags. */
#include "agent/config.h"

#include "agent/config_keys.h"
#include "base/file.h"
#include "base/yaml.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 512, MAX_ARGUMENT_FILE_BYTES = 64 * 1024, MAX_FILE_DEPTH = 4 };

/* One flag of the command line. */
struct flag {
    const char *name;  /* without the dashes */
    const char *value; /* NULL: none was given */
};

struct parser {
    struct arena *arena;
    struct config *config;
    const char *words[MAX_ARGUMENTS]; /* the command line with argument files expanded */
    int word_count;
    struct flag flags[MAX_ARGUMENTS];
    int flag_count;
    struct str unknown; /* names of unknown flags, under --strict=false */
};

static int set(struct parser *p, int index, const char *text, enum config_source source,
               struct error *err)
{
    if (config_set_value(&config_keys[index], &p->config->value, text, p->arena, err))
        return -1;
    p->config->source[index] = source;
    return 0;
}

/* ---- argument files and words ---- */

static int add_word(struct parser *p, const char *word, int depth, struct error *err);

/* "@file": words separated by white space, " #" starts a comment. */
static int add_file(struct parser *p, const char *path, int depth, struct error *err)
{
    if (depth >= MAX_FILE_DEPTH)
        return error_set(err, ERR_CONFIG, "@%s: argument files are nested more than %d deep", path,
                         MAX_FILE_DEPTH);
    auto_free char *bytes = NULL;
    size_t size = 0;
    if (file_read(path, MAX_ARGUMENT_FILE_BYTES, &bytes, &size, err)) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "argument file");
    }
    char *text = arena_strndup(p->arena, bytes, size);
    char *lines = NULL;
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *words = NULL;
        for (char *w = strtok_r(line, " \t\r", &words); w; w = strtok_r(NULL, " \t\r", &words)) {
            if (*w == '#')
                break;
            if (add_word(p, w, depth + 1, err))
                return -1;
        }
    }
    return 0;
}

static int add_word(struct parser *p, const char *word, int depth, struct error *err)
{
    if (word[0] == '@')
        return add_file(p, word + 1, depth, err);
    if (p->word_count == MAX_ARGUMENTS)
        return error_set(err, ERR_CONFIG, "more than %d arguments", MAX_ARGUMENTS);
    p->words[p->word_count++] = word;
    return 0;
}

/* Whether the flag may take `next` as its value. */
static bool takes_value(const struct parser *p, const char *name, const char *next)
{
    int index;
    bool known;
    struct error ignored;
    if (!next || str_starts_with(next, "--"))
        return false;
    if (config_find_key(name, &index, &known, &ignored))
        return true;
    if (config_keys[index].type != TYPE_BOOL)
        return true;
    struct agent_config scratch;
    return config_set_value(&config_keys[index], &scratch, next, p->arena, &ignored) == 0;
}

static bool is_shorthand(const char *name)
{
    for (int i = 0; i < config_shorthand_count; i++)
        if (strcmp(name, config_shorthands[i].name) == 0)
            return true;
    return strcmp(name, "help") == 0 || strcmp(name, "version") == 0;
}

static int split_flags(struct parser *p, struct error *err)
{
    for (int i = 0; i < p->word_count; i++) {
        const char *word = p->words[i];
        if (strcmp(word, "-h") == 0)
            word = "--help";
        if (!str_starts_with(word, "--") || !word[2])
            return error_set(err, ERR_CONFIG, "unexpected argument '%s'; flags begin with --",
                             word);
        const char *equals = strchr(word, '=');
        char *name = arena_strndup(p->arena, word + 2,
                                   equals ? (size_t)(equals - word - 2) : strlen(word + 2));
        for (char *c = name; *c; c++)
            if (*c == '-')
                *c = '_';
        struct flag *flag = &p->flags[p->flag_count++];
        flag->name = name;
        if (equals)
            flag->value = equals + 1;
        else if (i + 1 < p->word_count && !is_shorthand(name) &&
                 takes_value(p, name, p->words[i + 1]))
            flag->value = p->words[++i];
    }
    return 0;
}

/* ---- preset, files, environment, flags ---- */

static int apply_preset(struct parser *p, const char *name, struct error *err)
{
    auto_str struct str names;
    str_init(&names, 256);
    for (int i = 0; i < config_preset_count; i++) {
        const struct config_preset *preset = &config_presets[i];
        str_printf(&names, "%s%s", i ? ", " : "", preset->name);
        if (strcmp(preset->name, name) != 0)
            continue;
        p->config->preset = preset->name;
        for (const char *const *line = preset->settings; *line; line++) {
            const char *equals = strchr(*line, '=');
            int index;
            bool known;
            if (config_find_key(arena_strndup(p->arena, *line, (size_t)(equals - *line)), &index,
                                &known, err) ||
                set(p, index, equals + 1, SOURCE_PRESET, err))
                return error_wrap(err, "preset %s", name);
        }
        return 0;
    }
    return error_set(err, ERR_CONFIG, "--preset: '%s' is not one of: %s", name, str_text(&names));
}

static const char *scalar_text(struct arena *arena, const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return arena_printf(arena, "%lld", (long long)json_integer_value(value));
    if (json_is_real(value))
        return arena_printf(arena, "%.17g", json_real_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return NULL;
}

static int apply_group(struct parser *p, const char *group, json_t *keys, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(keys, name, value)
    {
        const char *full = arena_printf(p->arena, "%s.%s", group, name);
        const char *text = scalar_text(p->arena, value);
        int index;
        bool known;
        if (config_find_key(full, &index, &known, err))
            return -1;
        if (!text)
            return error_set(err, ERR_CONFIG, "%s: must be a single value", full);
        if (set(p, index, text, SOURCE_FILE, err))
            return error_wrap(err, "%s", full);
    }
    return 0;
}

static int apply_groups(struct parser *p, json_t *documents, struct error *err)
{
    json_t *root = json_array_get(documents, 0);
    if (json_array_size(documents) != 1 || !json_is_object(root))
        return error_set(err, ERR_CONFIG, "must be one mapping of groups of keys");
    const char *group;
    json_t *keys;
    json_object_foreach(root, group, keys)
    {
        if (!json_is_object(keys))
            return error_set(err, ERR_CONFIG, "%s: must be a mapping of keys", group);
        if (apply_group(p, group, keys, err))
            return -1;
    }
    return 0;
}

/* Groups of keys, as config_yaml writes them. */
static int apply_file(struct parser *p, const char *path, struct error *err)
{
    auto_free char *text = NULL;
    size_t size = 0;
    json_t *documents = NULL;
    if (file_read(path, YAML_MAX_BYTES, &text, &size, err) ||
        yaml_parse(text, size, path, &documents, err)) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "--config");
    }
    int result = apply_groups(p, documents, err);
    json_decref(documents);
    return result ? error_wrap(err, "--config %s", path) : 0;
}

static int apply_environment(struct parser *p, config_getenv lookup, void *ctx, struct error *err)
{
    for (int i = 0; i < config_key_count; i++) {
        char name[128];
        snprintf(name, sizeof name, "AGENT_%s_%s", config_keys[i].group, config_keys[i].name);
        for (char *c = name; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        const char *text = lookup(ctx, name);
        if (text && set(p, i, text, SOURCE_ENVIRONMENT, err))
            return error_wrap(err, "environment variable %s", name);
    }
    return 0;
}

static int apply_flag(struct parser *p, const struct flag *flag, struct error *err)
{
    const char *name = flag->name, *value = flag->value;
    for (int i = 0; i < config_shorthand_count; i++)
        if (strcmp(name, config_shorthands[i].name) == 0) {
            name = config_shorthands[i].key;
            value = config_shorthands[i].value;
        }
    int index;
    bool known;
    if (config_find_key(name, &index, &known, err)) {
        if (known)
            return error_wrap(err, "--%s", flag->name);
        str_printf(&p->unknown, "%s--%s", p->unknown.length ? ", " : "", flag->name);
        return 0;
    }
    if (!value)
        value = config_keys[index].implied;
    if (!value)
        return error_set(err, ERR_CONFIG, "--%s needs a value", flag->name);
    if (set(p, index, value, SOURCE_FLAG, err))
        return error_wrap(err, "--%s", flag->name);
    return 0;
}

/* Flags that are no keys: they choose what is read before the keys. */
static bool is_special(const struct flag *flag)
{
    return strcmp(flag->name, "help") == 0 || strcmp(flag->name, "version") == 0 ||
           strcmp(flag->name, "preset") == 0 || strcmp(flag->name, "config") == 0;
}

static int apply_specials(struct parser *p, const char *preset, struct error *err)
{
    for (int i = 0; i < p->flag_count; i++) {
        const struct flag *flag = &p->flags[i];
        if (strcmp(flag->name, "help") == 0)
            p->config->help = true;
        else if (strcmp(flag->name, "version") == 0)
            p->config->version = true;
        else if (is_special(flag) && !flag->value)
            return error_set(err, ERR_CONFIG, "--%s needs a value", flag->name);
        else if (strcmp(flag->name, "preset") == 0)
            preset = flag->value;
    }
    if (preset && *preset && apply_preset(p, preset, err))
        return -1;
    for (int i = 0; i < p->flag_count; i++)
        if (strcmp(p->flags[i].name, "config") == 0 && apply_file(p, p->flags[i].value, err))
            return -1;
    return 0;
}

/* ---- rules between keys ---- */

static int check_together(const struct agent_config *c, struct error *err)
{
    if (c->optimizer.nesterov && c->optimizer.momentum == 0)
        return error_set(err, ERR_CONFIG, "optimizer.nesterov needs optimizer.momentum above 0");
    if (c->checkpoint.resume[0] && strcmp(c->checkpoint.resume, "latest") == 0 &&
        !c->checkpoint.dir[0])
        return error_set(err, ERR_CONFIG,
                         "checkpoint.resume_from_checkpoint=latest needs checkpoint.dir");
    if (c->optimizer.beta1 >= 1 || c->optimizer.beta2 >= 1)
        return error_set(err, ERR_CONFIG, "optimizer.%s must be below 1",
                         c->optimizer.beta1 >= 1 ? "beta1" : "beta2");
    if (!c->data.root[0])
        return error_set(err, ERR_CONFIG, "data.root is empty; name a directory");
    if (strcmp(c->runtime.device, "cpu") != 0 && strcmp(c->runtime.device, "auto") != 0)
        return error_set(err, ERR_CONFIG, "runtime.device: '%s' is not one of: cpu auto",
                         c->runtime.device);
    if (strcmp(c->model.type, "mnist_cnn") != 0)
        return error_set(err, ERR_CONFIG, "model.type: '%s' is not one of: mnist_cnn",
                         c->model.type);
    return 0;
}

static int report_unknown(struct parser *p, struct error *err)
{
    if (!p->unknown.length)
        return 0;
    if (!p->config->value.runtime.strict) {
        p->config->warning =
            arena_printf(p->arena, "unknown flags are ignored: %s", str_text(&p->unknown));
        return 0;
    }
    /* The first one again, for its own message with the nearest name. */
    const char *first =
        arena_strndup(p->arena, str_text(&p->unknown) + 2, strcspn(str_text(&p->unknown), ",") - 2);
    int index;
    bool known;
    config_find_key(first, &index, &known, err);
    return error_wrap(err, "unknown flag%s %s", strchr(str_text(&p->unknown), ',') ? "s" : "",
                      str_text(&p->unknown));
}

static int parse_sources(struct parser *p, int argc, const char *const *argv, config_getenv lookup,
                         void *ctx, struct error *err)
{
    for (int i = 0; i < config_key_count; i++)
        if (set(p, i, config_keys[i].default_value, SOURCE_DEFAULT, err))
            return error_wrap(err, "default of %s", config_keys[i].name);
    for (int i = 0; i < argc; i++)
        if (add_word(p, argv[i], 0, err))
            return -1;
    if (split_flags(p, err) || apply_specials(p, lookup(ctx, "AGENT_PRESET"), err) ||
        apply_environment(p, lookup, ctx, err))
        return -1;
    for (int i = 0; i < p->flag_count; i++)
        if (!is_special(&p->flags[i]) && apply_flag(p, &p->flags[i], err))
            return -1;
    if (report_unknown(p, err))
        return -1;
    return check_together(&p->config->value, err);
}

int config_parse(int argc, const char *const *argv, config_getenv lookup, void *lookup_ctx,
                 struct arena *arena, struct config *ret_config, struct error *err)
{
    struct config config = {.preset = "", .warning = ""};
    struct parser *p = arena_new(arena, struct parser);
    p->arena = arena;
    p->config = &config;
    str_init(&p->unknown, 1024);
    int result = parse_sources(p, argc, argv, lookup, lookup_ctx, err);
    str_free(&p->unknown);
    if (result == 0)
        *ret_config = config;
    return result;
}
