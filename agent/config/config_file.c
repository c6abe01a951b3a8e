/* Files of settings: groups of keys, as config_yaml writes them, or accelerate's. */
#include "agent/config/config_parser.h"

#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"

#include <string.h>

static const char *scalar_text(struct arena *arena, const struct json *value)
{
    if (json_is_string(value))
        return json_as_text(value);
    if (json_is_integer(value))
        return arena_printf(arena, "%lld", (long long)json_as_integer(value));
    if (json_is_real(value))
        /* 17 digits are read back as the very same double (IEEE 754). */
        return arena_printf(arena, "%.17g", json_as_number(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return NULL;
}

const char *config_json_text(struct arena *arena, const struct json *value)
{
    if (!json_is_array(value))
        return scalar_text(arena, value);
    const char *list = "";
    for (size_t i = 0; i < json_array_count(value); i++) {
        const char *item = scalar_text(arena, json_at(value, i));
        if (!item)
            return NULL;
        list = arena_printf(arena, "%s%s%s", list, i ? "," : "", item);
    }
    return list;
}

int config_read_mapping(struct config_parser *p, const char *text,
                        const struct config_flag **ret_items, int *ret_count, struct error *err)
{
    struct json *documents = NULL, *value;
    if (yaml_parse(text, strlen(text), "its text", &documents, err)) {
        err->code = ERR_CONFIG;
        return -1;
    }
    struct json *root = json_at(documents, 0);
    bool is_mapping = json_array_count(documents) == 1 && json_is_object(root);
    struct config_flag *items =
        arena_array(p->arena, struct config_flag, json_object_count(root) + 1);
    *ret_items = items;
    *ret_count = 0;
    json_each_member(value, root) {
        const char *name = json_key(value);
        const char *one = config_json_text(p->arena, value);
        is_mapping &= one != NULL;
        items[(*ret_count)++] = (struct config_flag){arena_strdup(p->arena, name),
                                                     one ? arena_strdup(p->arena, one) : ""};
    }
    json_free(documents);
    return is_mapping
               ? 0
               : error_set(err, ERR_CONFIG,
                           "'%.80s' is no mapping of single values, as {\"min_lr\": 1e-6}", text);
}

static int apply_group(struct config_parser *p, const char *group, struct json *keys,
                       struct error *err)
{
    struct json *value;
    json_each_member(value, keys) {
        const char *name = json_key(value);
        const char *full = arena_printf(p->arena, "%s.%s", group, name);
        if (json_is_object(value) && !strchr(group, '.')) { /* a map within the group */
            if (apply_group(p, full, value, err))
                return -1;
            continue;
        }
        const char *text = config_json_text(p->arena, value);
        if (!text)
            return error_set(err, ERR_CONFIG, "%s: must be a single value", full);
        if (config_apply(p, full, text, SOURCE_FILE, err)) {
            bool known = err->code != ERR_NOT_FOUND;
            err->code = ERR_CONFIG;
            return known ? error_wrap(err, "%s", full) : -1;
        }
    }
    return 0;
}

static int apply_groups(struct config_parser *p, struct json *root, struct error *err)
{
    struct json *keys;
    json_each_member(keys, root) {
        const char *group = json_key(keys);
        if (strcmp(group, "preset") == 0)
            continue;
        if (!json_is_object(keys))
            return error_set(err, ERR_CONFIG, "%s: must be a mapping of keys", group);
        if (apply_group(p, group, keys, err))
            return -1;
    }
    return 0;
}

static int count_keys(const struct json *root)
{
    const struct json *value;
    int count = 0;
    json_each_member(value, root) {
        count += json_is_object(value) ? count_keys(value) : 1;
    }
    return count;
}

/* A configuration as it was resolved, given back, perhaps by another version's run: nobody asked
 * for each value of it. */
static void note_resolved(struct config_parser *p, const struct json *root)
{
    bool has_most = 2 * count_keys(root) > config_key_count();
    for (int i = 0; has_most && i < config_key_count(); i++)
        p->config->is_resolved[i] = true;
}

static bool is_accelerate(const struct json *root)
{
    return json_get(root, "compute_environment") || json_get(root, "distributed_type") ||
           json_get(root, "fsdp_config");
}

static enum config_file_kind kind_of(const char *flag, const struct json *root)
{
    if (strcmp(flag, "fsdp_config") == 0)
        return CONFIG_FSDP;
    return strcmp(flag, "config_file") == 0 || is_accelerate(root) ? CONFIG_ACCELERATE : CONFIG_OWN;
}

int config_open_file(struct config_parser *p, const char *flag, const char *path, struct error *err)
{
    auto_free char *text = NULL;
    size_t size = 0;
    struct json *documents = NULL;
    bool is_text = strcmp(flag, "fsdp_config") == 0 && path[0] == '{';
    if (p->file_count == CONFIG_MAX_FILES)
        return error_set(err, ERR_CONFIG, "--%s: more than %d files", flag, CONFIG_MAX_FILES);
    if (is_text) {
        text = xstrdup(path);
        size = strlen(text);
        path = "its text";
    }
    if ((!is_text && file_read(path, YAML_MAX_BYTES, &text, &size, err)) ||
        yaml_parse(text, size, path, &documents, err)) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "--%s", flag);
    }
    struct json *root = json_at(documents, 0);
    int result = 0;
    if (json_array_count(documents) != 1 || !json_is_object(root))
        result = error_set(err, ERR_CONFIG, "--%s %s: must be one mapping of %skeys", flag, path,
                           strcmp(flag, "config") == 0 ? "groups of " : "");
    else
        p->files[p->file_count++] =
            (struct config_file){flag, path, json_take_at(documents, 0), kind_of(flag, root)};
    json_free(documents);
    return result;
}

int config_apply_file_presets(struct config_parser *p, struct error *err)
{
    for (int i = 0; i < p->file_count; i++) {
        const struct config_file *file = &p->files[i];
        const struct json *preset = json_get(file->root, "preset");
        const char *names = "";
        if (file->kind == CONFIG_ACCELERATE)
            names = "accelerate";
        else if (file->kind == CONFIG_OWN && preset)
            names = config_json_text(p->arena, preset);
        if (!names)
            return error_set(err, ERR_CONFIG, "--%s %s: preset: must be a name or a list",
                             file->flag, file->name);
        if (config_apply_presets(p, names, err))
            return error_wrap(err, "--%s %s", file->flag, file->name);
    }
    return 0;
}

int config_apply_files(struct config_parser *p, struct error *err)
{
    for (int i = 0; i < p->file_count; i++) {
        const struct config_file *file = &p->files[i];
        int result = 0;
        switch (file->kind) {
        case CONFIG_OWN:
            result = apply_groups(p, file->root, err);
            note_resolved(p, file->root);
            break;
        case CONFIG_ACCELERATE:
            result = config_apply_accelerate(p, file->root, file->name, err);
            break;
        case CONFIG_FSDP:
            result = config_apply_fsdp_keys(p, file->root, err);
            break;
        }
        if (result)
            return error_wrap(err, "--%s %s", file->flag, file->name);
    }
    return 0;
}

void config_close_files(struct config_parser *p)
{
    for (int i = 0; i < p->file_count; i++)
        json_free(p->files[i].root);
}
