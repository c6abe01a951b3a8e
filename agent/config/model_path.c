#include "agent/config/model_path.h"

#include "base/file.h"
#include "base/str.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_REF_BYTES = 256 };

/* A cache is DIRECTORY of the variable's value. */
static const struct {
    const char *variable, *directory;
} caches[] = {
    {"HF_HUB_CACHE", ""},
    {"HUGGINGFACE_HUB_CACHE", ""}, /* its name before huggingface_hub 0.16, which heeds it still */
    {"HF_HOME", "/hub"},
    {"TRANSFORMERS_CACHE", ""},
    {"XDG_CACHE_HOME", "/huggingface/hub"},
    {"HOME", "/.cache/huggingface/hub"},
};

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* "ORG/NAME" or "NAME"; what begins like a path is none, nor is what could leave the cache. */
static bool is_id(const char *name)
{
    const char *slash = strchr(name, '/');
    return name[0] && name[0] != '/' && name[0] != '.' && !strstr(name, "..") &&
           (!slash || (slash[1] && !strchr(slash + 1, '/')));
}

/* The snapshot that refs/main names; NULL if there is none. */
static const char *find_snapshot(const char *model, struct arena *arena)
{
    auto_free char *text = NULL;
    size_t bytes = 0;
    struct error ignored;
    const char *refs = arena_printf(arena, "%s/refs/main", model), *ref = "main";
    if (file_read(refs, MAX_REF_BYTES, &text, &bytes, &ignored) == 0)
        ref = arena_strndup(arena, text, strcspn(text, " \r\n"));
    if (!*ref || strchr(ref, '/') || *ref == '.')
        return NULL;
    const char *path = arena_printf(arena, "%s/snapshots/%s", model, ref);
    return is_there(path) ? path : NULL;
}

/* kind: "models" or "datasets". */
static const char *directory_of(const char *cache, const char *kind, const char *id,
                                struct arena *arena)
{
    const char *slash = strchr(id, '/');
    if (!slash)
        return arena_printf(arena, "%s/%s--%s", cache, kind, id);
    return arena_printf(arena, "%s/%s--%.*s--%s", cache, kind, (int)(slash - id), id, slash + 1);
}

/* NULL: no cache has it; they are added to `tried`. */
static const char *find_cached(const char *kind, const char *name, getenv_fn *lookup, void *ctx,
                               struct arena *arena, struct str *tried)
{
    for (size_t i = 0; is_id(name) && i < array_length(caches); i++) {
        const char *value = lookup(ctx, caches[i].variable);
        if (!value || !*value)
            continue;
        /* a shell expands "~", the ENV of an image does not: huggingface_hub does it itself */
        const char *home = str_starts_with(value, "~/") ? lookup(ctx, "HOME") : NULL;
        const char *cache = arena_printf(arena, "%s%s%s", home ? home : "",
                                         home ? value + 1 : value, caches[i].directory);
        const char *path = find_snapshot(directory_of(cache, kind, name, arena), arena);
        if (path)
            return path;
        str_printf(tried, "%s%s", tried->length ? ", " : ", nor in the cache ", cache);
    }
    return NULL;
}

/* The step of "checkpoint-STEP"; below 0: it is no such name. */
static int64_t step_of(const char *name)
{
    static const char prefix[] = "checkpoint-";
    int64_t step = -1;
    if (!str_starts_with(name, prefix) || !str_to_i64(name + strlen(prefix), 0, INT64_MAX, &step))
        return -1;
    return step;
}

/* Trainer's output_dir has its models one level below: the newest one there; NULL: it is none. */
static const char *find_below(const char *dir, struct arena *arena)
{
    int64_t newest = -1;
    DIR *entries = is_there(arena_printf(arena, "%s/config.json", dir)) ? NULL : opendir(dir);
    if (!entries)
        return NULL;
    for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        int64_t step = step_of(entry->d_name);
        if (step > newest && is_there(arena_printf(arena, "%s/%s/config.json", dir, entry->d_name)))
            newest = step;
    }
    closedir(entries);
    return newest < 0 ? NULL : arena_printf(arena, "%s/checkpoint-%lld", dir, (long long)newest);
}

int resolve_model_path(const char *name, getenv_fn *lookup, void *ctx, struct arena *arena,
                       const char **ret_path, struct error *err)
{
    auto_str struct str tried;
    str_init(&tried, 512);
    const char *path =
        is_there(name) ? name : find_cached("models", name, lookup, ctx, arena, &tried);
    if (!path)
        return error_set(err, ERR_NOT_FOUND, "there is no '%s' here%s%s%s", name, str_text(&tried),
                         is_id(name) ? "; if the Hub has it: hf download " : "",
                         is_id(name) ? name : "");
    const char *below = find_below(path, arena);
    if (below)
        return error_set(err, ERR_NOT_FOUND, "%s has no config.json, but %s has: name that", path,
                         below);
    *ret_path = path;
    return 0;
}

/* A data set that is neither here nor below the root, under its whole name or its last part, may
 * be in a cache. What is nowhere is reported when it is opened. */
static void resolve_dataset(struct agent_config *c, getenv_fn *lookup, void *ctx,
                            struct arena *arena)
{
    auto_str struct str tried;
    const char *name = c->data.source.dataset, *slash = strchr(name, '/');
    str_init(&tried, 512);
    if (is_there(name) || is_there(arena_printf(arena, "%s/%s", c->data.source.root, name)) ||
        (slash && is_there(arena_printf(arena, "%s%s", c->data.source.root, slash))))
        return;
    const char *path = find_cached("datasets", name, lookup, ctx, arena, &tried);
    if (path)
        c->data.source.dataset = path;
}

/* Whether the place is a data set of files alone: one, a pattern of some, or a Megatron pair. */
static bool is_files(const char *path, struct arena *arena)
{
    return strpbrk(path, "*?[") ||
           (!file_is_directory(path) &&
            (is_there(path) || is_there(arena_printf(arena, "%s.idx", path))));
}

/* Only a directory has one below it. Looked for where token_files_find does. */
static void note_subdirectory(struct config *config, struct arena *arena)
{
    const struct agent_config *c = &config->value;
    const char *name = c->data.source.dataset;
    const char *const candidates[] = {
        name, arena_printf(arena, "%s/%s", c->data.source.root, name),
        arena_printf(arena, "%s/%s", c->data.source.root, str_after_last(name, '/'))};
    size_t i = 0;
    while (i < array_length(candidates) && !file_is_directory(candidates[i]) &&
           !is_files(candidates[i], arena))
        i++;
    if (i < array_length(candidates) && is_files(candidates[i], arena) &&
        c->data.source.dataset_config_name[0] &&
        config_is_given(config, &c->data.source.dataset_config_name))
        config->warning = arena_printf(
            arena, "%s%sdata.dataset_config_name is ignored: data.dataset is no directory: %s",
            config->warning, config->warning[0] ? "; " : "", name);
}

/* Links stay: where one leads, a tokenizer's files have other names. */
static const char *absolute_path(const char *path, struct arena *arena)
{
    if (!path[0])
        return path;
    auto_free char *absolute = file_absolute(path);
    return arena_strdup(arena, absolute);
}

static int resolve_tokenizer(struct config *config, getenv_fn *lookup, void *ctx,
                             struct arena *arena, struct error *err)
{
    struct agent_config *c = &config->value;
    if (c->data.tokenizer[0] == '\0' ||
        resolve_model_path(c->data.tokenizer, lookup, ctx, arena, &c->data.tokenizer, err) == 0)
        return 0;
    if (config_source_of(config, &c->data.tokenizer) > SOURCE_PRESET)
        return error_wrap(err, "data.tokenizer");
    config->no_tokenizer = arena_strdup(arena, err->msg);
    c->data.tokenizer = "";
    return 0;
}

int resolve_config_paths(struct config *config, getenv_fn *lookup, void *ctx, struct arena *arena,
                         struct error *err)
{
    struct agent_config *c = &config->value;
    if (!config_is_language(c))
        return 0;
    if (c->model.name_or_path[0] &&
        resolve_model_path(c->model.name_or_path, lookup, ctx, arena, &c->model.name_or_path, err))
        return error_wrap(err, "model.name_or_path");
    if (c->model.init_weights[0] &&
        resolve_model_path(c->model.init_weights, lookup, ctx, arena, &c->model.init_weights, err))
        return error_wrap(err, "model.init_weights");
    resolve_dataset(c, lookup, ctx, arena);
    note_subdirectory(config, arena);
    if (resolve_tokenizer(config, lookup, ctx, arena, err))
        return -1;
    c->data.tokenizer = absolute_path(c->data.tokenizer, arena);
    c->model.name_or_path = absolute_path(c->model.name_or_path, arena);
    return 0;
}
