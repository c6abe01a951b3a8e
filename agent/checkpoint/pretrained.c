#include "agent/checkpoint/pretrained_index.h"
#include "agent/checkpoint/pretrained_internal.h"
#include "agent/checkpoint/pretrained_names.h"
#include "agent/checkpoint/pretrained_unsupported.h"
#include "agent/checkpoint/safetensors.h"
#include "agent/checkpoint/tensor_values.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ---- */

static int open_files(struct pretrained *p, const char **names, int count, struct error *err)
{
    p->names = names;
    p->files = arena_array(p->arena, struct safetensors *, count);
    for (; p->file_count < count; p->file_count++) {
        auto_free char *path = xasprintf("%s/%s", p->dir, names[p->file_count]);
        if (safetensors_open(path, &p->files[p->file_count], err) < 0)
            return -1;
    }
    return 0;
}

/* What the index promises is there. */
static int check_index(const struct pretrained *p, const struct pretrained_index *index,
                       struct error *err)
{
    for (int i = 0; i < index->entry_count; i++) {
        const struct pretrained_entry *entry = &index->entries[i];
        int f = 0;
        while (strcmp(p->names[f], entry->file) != 0)
            f++;
        if (!safetensors_find(safetensors_header(p->files[f]), entry->tensor))
            return error_set(err, ERR_INPUT, "%s/%s: tensor %s is not in it, though %s says so",
                             p->dir, entry->file, entry->tensor, PRETRAINED_INDEX);
    }
    return 0;
}

/* Which file of the index is not there, and for which tensor it is needed. */
static int check_files(const struct pretrained *p, const struct pretrained_index *index,
                       struct error *err)
{
    for (int i = 0; i < index->entry_count; i++) {
        const struct pretrained_entry *entry = &index->entries[i];
        auto_free char *path = xasprintf("%s/%s", p->dir, entry->file);
        if (access(path, F_OK) < 0)
            return error_set(err, ERR_NOT_FOUND,
                             "%s is missing: " PRETRAINED_INDEX " says that tensor %s is in it; "
                             "fetch the whole model again",
                             path, entry->tensor);
    }
    return 0;
}

static int open_sharded(struct pretrained *p, const char *path, struct error *err)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct pretrained_index index;
    if (file_read(path, PRETRAINED_INDEX_MAX_BYTES, &text, &bytes, err) < 0 ||
        pretrained_index_parse(p->arena, path, text, bytes, &index, err) < 0 ||
        check_files(p, &index, err) < 0 || open_files(p, index.files, index.file_count, err) < 0)
        return -1;
    return check_index(p, &index, err);
}

static int refuse_directory(const char *dir, struct error *err)
{
    auto_free char *unread = pretrained_find_unsupported(dir);
    if (unread)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is not read, only " PRETRAINED_FILE " and what " PRETRAINED_INDEX
                         " names: write these with transformers' save_pretrained, or draw the "
                         "values with model.init=random",
                         unread);
    auto_free char *manifest = xasprintf("%s/COMPLETE", dir);
    if (access(manifest, F_OK) == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "%s: a checkpoint of Shoal's, and no model's directory: shoal export "
                         "makes one of it",
                         dir);
    return error_set(err, ERR_NOT_FOUND,
                     "%s: neither " PRETRAINED_FILE " nor " PRETRAINED_INDEX " is there; "
                     "model.init=random draws the values",
                     dir);
}

static int open_single(struct pretrained *p, const char *name, struct error *err)
{
    const char **names = arena_array(p->arena, const char *, 1);
    names[0] = name;
    return open_files(p, names, 1, err);
}

/* One file of all tensors, as checkpoint.save_model writes it. */
static bool is_file(const char *path)
{
    return access(path, F_OK) == 0 && !file_is_directory(path);
}

/* p->dir is the file's path. */
static int open_file(struct pretrained *p, struct error *err)
{
    const char *name = str_after_last(p->dir, '/');
    size_t before = (size_t)(name - p->dir);
    p->dir = before ? arena_strndup(p->arena, p->dir, before) : ".";
    return open_single(p, name, err);
}

static int open_directory(struct pretrained *p, struct error *err)
{
    auto_free char *index = xasprintf("%s/" PRETRAINED_INDEX, p->dir);
    auto_free char *single = xasprintf("%s/" PRETRAINED_FILE, p->dir);
    /* in transformers' order, which leaves an older save's index where it saves one file */
    if (access(single, F_OK) == 0)
        return open_single(p, PRETRAINED_FILE, err);
    if (access(index, F_OK) == 0)
        return open_sharded(p, index, err);
    return refuse_directory(p->dir, err);
}

bool pretrained_exists(const char *dir)
{
    if (is_file(dir))
        return true;
    auto_free char *index = xasprintf("%s/" PRETRAINED_INDEX, dir);
    auto_free char *single = xasprintf("%s/" PRETRAINED_FILE, dir);
    if (access(index, F_OK) == 0 || access(single, F_OK) == 0)
        return true;
    auto_free char *unread = pretrained_find_unsupported(dir);
    return unread != NULL;
}

int pretrained_open(const char *dir, struct pretrained **ret_pretrained, struct error *err)
{
    struct pretrained *p = xcalloc(1, sizeof *p);
    p->arena = arena_open();
    p->dir = arena_strdup(p->arena, dir);
    if ((is_file(dir) ? open_file(p, err) : open_directory(p, err)) < 0) {
        pretrained_close(p);
        return -1;
    }
    *ret_pretrained = p;
    return 0;
}

void pretrained_close(struct pretrained *pretrained)
{
    if (!pretrained)
        return;
    for (int i = 0; i < pretrained->file_count; i++)
        safetensors_close(pretrained->files[i]);
    arena_close(pretrained->arena);
    free(pretrained);
}

/* ---- finding ---- */

struct pretrained_location pretrained_find(const struct pretrained *p, const char *name)
{
    for (int f = 0; f < p->file_count; f++) {
        const struct safetensors_tensor *t =
            safetensors_find(safetensors_header(p->files[f]), name);
        if (t)
            return (struct pretrained_location){f, t};
    }
    return (struct pretrained_location){0, NULL};
}

static struct pretrained_location find_by_name(const struct pretrained *p, const char *name)
{
    char text[256];
    struct pretrained_location location = pretrained_find(p, name);
    /* transformers saves a model with its head ("model.", "transformer.", "bert.") or without: the
     * same tensor with or without the prefix. */
    if (!location.tensor)
        location = pretrained_find(p, pretrained_inner_name(name));
    const char *old = pretrained_old_name(name, text, sizeof text);
    if (!location.tensor && old)
        location = pretrained_find(p, old);
    return location.tensor || !old ? location : pretrained_find(p, pretrained_inner_name(old));
}

struct pretrained_location pretrained_find_param(const struct pretrained *p,
                                                 const struct model *model,
                                                 const struct param *param)
{
    struct pretrained_location location = find_by_name(p, param->name);
    for (int i = 0; i < model->tie_count && !location.tensor; i++)
        if (model->ties[i].param == param)
            location = find_by_name(p, model->ties[i].name);
    return location;
}

static void print_shape(const int64_t *shape, int dims, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "[");
    for (int d = 0; d < dims && length < size; d++)
        length += (size_t)snprintf(text + length, size - length, "%s%lld", d ? ", " : "",
                                   (long long)shape[d]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

static int check_param(const struct pretrained *p, const struct model *model,
                       const struct param *param, struct error *err)
{
    struct pretrained_location location = pretrained_find_param(p, model, param);
    const struct safetensors_tensor *t = location.tensor;
    if (!t)
        return error_set(err, ERR_INPUT, "%s: tensor %s is missing", p->dir, param->name);
    const char *file = p->names[location.file];
    if (!tensor_has_values(t->dtype))
        return error_set(err, ERR_INPUT, "%s/%s: tensor %s is %s: F32, F16 and BF16 can be read",
                         p->dir, file, t->name, safetensors_dtype_name(t->dtype));
    if (t->dims == param->dims &&
        memcmp(t->shape, param->shape, (size_t)t->dims * sizeof t->shape[0]) == 0)
        return 0;
    char theirs[128], ours[128];
    print_shape(t->shape, t->dims, theirs, sizeof theirs);
    print_shape(param->shape, param->dims, ours, sizeof ours);
    return error_set(err, ERR_INPUT, "%s/%s: tensor %s is %s, the model's is %s", p->dir, file,
                     t->name, theirs, ours);
}

/* head: m belongs to one. */
static int check_module(const struct pretrained *p, const struct model *model,
                        const struct module *m, bool head, struct lines *warnings,
                        struct error *err)
{
    head |= m->is_head;
    for (int i = 0; i < m->param_count; i++) {
        if (!head || pretrained_find_param(p, model, m->params[i]).tensor) {
            if (check_param(p, model, m->params[i], err) < 0)
                return -1;
        } else if (warnings) {
            lines_add(warnings, "%s: tensor %s is missing: it begins with random values", p->dir,
                      m->params[i]->name);
        }
    }
    for (int i = 0; i < m->child_count; i++)
        if (check_module(p, model, m->children[i], head, warnings, err) < 0)
            return -1;
    return 0;
}

/* Whether a parameter goes by this name of a file. */
static bool is_wanted(const struct module *m, const char *name)
{
    for (int i = 0; i < m->param_count; i++) {
        char text[256];
        const char *own = m->params[i]->name, *old = pretrained_old_name(own, text, sizeof text);
        if (strcmp(own, name) == 0 || strcmp(pretrained_inner_name(own), name) == 0 ||
            (old && (strcmp(old, name) == 0 || strcmp(pretrained_inner_name(old), name) == 0)))
            return true;
    }
    for (int i = 0; i < m->child_count; i++)
        if (is_wanted(m->children[i], name))
            return true;
    return false;
}

/* Whether a file may have the tensor although it is another one's double. */
static bool is_tied(const struct model *model, const char *name)
{
    for (int i = 0; i < model->tie_count; i++)
        if (strcmp(model->ties[i].name, name) == 0)
            return true;
    return false;
}

int pretrained_check(const struct pretrained *pretrained, const struct model *model,
                     struct lines *warnings, struct error *err)
{
    if (check_module(pretrained, model, model->root, false, warnings, err) < 0)
        return -1;
    for (int f = 0; warnings && f < pretrained->file_count; f++) {
        const struct safetensors_header *header = safetensors_header(pretrained->files[f]);
        for (int i = 0; i < header->tensor_count; i++) {
            const char *name = header->tensors[i].name;
            if (!is_tied(model, name) && !pretrained_is_buffer(name) &&
                !is_wanted(model->root, name))
                lines_add(warnings, "%s/%s: tensor %s is not used", pretrained->dir,
                          pretrained->names[f], name);
        }
    }
    return 0;
}
