#include "agent/checkpoint/pretrained.h"

#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/pretrained_index.h"
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

enum { CHUNK_ELEMENTS = 1 << 20 }; /* read and converted at once */

struct pretrained {
    struct arena *arena;
    const char *dir;
    const char **names; /* of the files, for messages */
    struct safetensors **files;
    int file_count;
};

/* A tensor of a file. */
struct place {
    int file;
    const struct safetensors_tensor *tensor; /* NULL: in none of the files */
};

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
    for (int i = 0; i < index->place_count; i++) {
        const struct pretrained_entry *place = &index->places[i];
        int f = 0;
        while (strcmp(p->names[f], place->file) != 0)
            f++;
        if (!safetensors_find(safetensors_header(p->files[f]), place->tensor))
            return error_set(err, ERR_INPUT, "%s/%s: tensor %s is not in it, though %s says so",
                             p->dir, place->file, place->tensor, PRETRAINED_INDEX);
    }
    return 0;
}

/* Which file of the index is not there, and for which tensor it is needed. */
static int check_files(const struct pretrained *p, const struct pretrained_index *index,
                       struct error *err)
{
    for (int i = 0; i < index->place_count; i++) {
        const struct pretrained_entry *place = &index->places[i];
        auto_free char *path = xasprintf("%s/%s", p->dir, place->file);
        if (access(path, F_OK) < 0)
            return error_set(err, ERR_NOT_FOUND,
                             "%s is missing: " PRETRAINED_INDEX " says that tensor %s is in it; "
                             "fetch the whole model again",
                             path, place->tensor);
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
    if (access(index, F_OK) == 0)
        return open_sharded(p, index, err);
    if (access(single, F_OK) < 0)
        return refuse_directory(p->dir, err);
    return open_single(p, PRETRAINED_FILE, err);
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

static struct place find(const struct pretrained *p, const char *name)
{
    for (int f = 0; f < p->file_count; f++) {
        const struct safetensors_tensor *t =
            safetensors_find(safetensors_header(p->files[f]), name);
        if (t)
            return (struct place){f, t};
    }
    return (struct place){0, NULL};
}

static struct place find_param(const struct pretrained *p, const char *name)
{
    char text[256];
    struct place place = find(p, name);
    /* transformers saves a model with its head ("model.", "transformer.", "bert.") or without: the
     * same tensor with or without the prefix. */
    if (!place.tensor)
        place = find(p, pretrained_inner_name(name));
    const char *old = pretrained_old_name(name, text, sizeof text);
    if (!place.tensor && old)
        place = find(p, old);
    return place.tensor || !old ? place : find(p, pretrained_inner_name(old));
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

static int check_param(const struct pretrained *p, const struct param *param, struct error *err)
{
    struct place place = find_param(p, param->name);
    const struct safetensors_tensor *t = place.tensor;
    if (!t)
        return error_set(err, ERR_INPUT, "%s: tensor %s is missing", p->dir, param->name);
    const char *file = p->names[place.file];
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
static int check_module(const struct pretrained *p, const struct module *m, bool head,
                        struct lines *warnings, struct error *err)
{
    head |= m->is_head;
    for (int i = 0; i < m->param_count; i++) {
        if (!head || find_param(p, m->params[i]->name).tensor) {
            if (check_param(p, m->params[i], err) < 0)
                return -1;
        } else if (warnings) {
            lines_add(warnings, "%s: tensor %s is missing: it begins with random values", p->dir,
                      m->params[i]->name);
        }
    }
    for (int i = 0; i < m->child_count; i++)
        if (check_module(p, m->children[i], head, warnings, err) < 0)
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
    if (check_module(pretrained, model->root, false, warnings, err) < 0)
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

/* ---- loading ---- */

static int read_floats(const struct pretrained *p, struct place place, int64_t first, int64_t count,
                       void *raw, float *ret_values, struct error *err)
{
    return tensor_read_values(p->files[place.file], place.tensor, first, count, raw, ret_values,
                              err);
}

/* Tensors that differ do so early: more is not read. */
int pretrained_tensors_differ(const struct pretrained *p, const char *name, const char *other,
                              bool *ret_differ, struct error *err)
{
    struct place one = find(p, name), two = find(p, other);
    *ret_differ = false;
    if (!one.tensor || !two.tensor || !tensor_has_values(one.tensor->dtype) ||
        !tensor_has_values(two.tensor->dtype))
        return 0;
    *ret_differ = one.tensor->count != two.tensor->count;
    if (*ret_differ)
        return 0;
    int64_t count = one.tensor->count < CHUNK_ELEMENTS ? one.tensor->count : CHUNK_ELEMENTS;
    auto_free float *values = xmalloc((size_t)count * sizeof *values);
    auto_free float *others = xmalloc((size_t)count * sizeof *others);
    auto_free float *raw = xmalloc((size_t)count * sizeof *raw);
    if (read_floats(p, one, 0, count, raw, values, err) < 0 ||
        read_floats(p, two, 0, count, raw, others, err) < 0)
        return -1;
    *ret_differ = memcmp(values, others, (size_t)count * sizeof *values) != 0;
    return 0;
}

/* What loading works with. */
struct loading {
    const struct pretrained *pretrained;
    struct shard *shard;
    const struct model *model;
    bool allow_nonfinite;
    void *raw;              /* [CHUNK_ELEMENTS] as stored */
    float *values, *others; /* [CHUNK_ELEMENTS] */
};

/* What goes by other names, too, must be the same there. */
static int compare_ties(struct loading *l, const struct param *param, int64_t first, int64_t count,
                        struct error *err)
{
    for (int i = 0; i < l->model->tie_count; i++) {
        const struct model_tie *tie = &l->model->ties[i];
        struct place place = find(l->pretrained, tie->name);
        if (tie->param != param || !place.tensor)
            continue;
        if (place.tensor->count != param->count)
            return error_set(err, ERR_INPUT,
                             "%s: tensor %s has another shape than %s, which it is "
                             "tied to",
                             l->pretrained->dir, tie->name, param->name);
        if (read_floats(l->pretrained, place, first, count, l->raw, l->others, err) < 0)
            return -1;
        /* One parameter stands for both, so different values would silently lose the head. */
        if (memcmp(l->values, l->others, (size_t)count * sizeof *l->values) != 0)
            return error_set(
                err, ERR_INPUT,
                "%s: tensor %s differs from %s, but the model ties them (config.json's "
                "tie_word_embeddings)",
                l->pretrained->dir, tie->name, param->name);
    }
    return 0;
}

/* By its name in the file, which may be another than the parameter's. */
static int check_finite(const struct loading *l, struct place place, int64_t first, int64_t count,
                        struct error *err)
{
    const struct pretrained *p = l->pretrained;
    const struct safetensors_tensor *t = place.tensor;
    enum safetensors_dtype dtype = tensor_dtype_of(shard_dtype(l->shard));
    struct nonfinite found;
    if (l->allow_nonfinite || !nonfinite_find(dtype, l->values, count, &found))
        return 0;
    found.element += first;
    nonfinite_error(ERR_INPUT, t->name, t->dims, t->shape, &found, err);
    return error_wrap(err, "%s/%s", p->dir, p->names[place.file]);
}

/* To the slice, whose dtype they have. */
static void put(struct loading *l, const struct param_range *range, int64_t done, int64_t count)
{
    enum dtype dtype = shard_dtype(l->shard);
    char *slice = (char *)shard_get_unit(l->shard, range->unit)->value;
    size_t size = dtype_bytes(dtype);
    stream_copy(shard_update_stream(l->shard), slice + (size_t)(range->shard_offset + done) * size,
                l->values, (size_t)count * size);
}

static int load_range(struct loading *l, const struct param_range *range, struct error *err)
{
    struct place place = find_param(l->pretrained, range->param->name);
    if (!place.tensor) /* a head's */
        return 0;
    for (int64_t done = 0; done < range->count; done += CHUNK_ELEMENTS) {
        int64_t count = range->count - done < CHUNK_ELEMENTS ? range->count - done : CHUNK_ELEMENTS;
        int64_t first = range->param_offset + done;
        if (read_floats(l->pretrained, place, first, count, l->raw, l->values, err) < 0 ||
            compare_ties(l, range->param, first, count, err) < 0)
            return -1;
        dtype_narrow(shard_dtype(l->shard), l->values, count);
        if (check_finite(l, place, first, count, err) < 0)
            return -1;
        put(l, range, done, count);
        /* `values` is read into again at once: the copy out of it must have ended. */
        if (stream_sync(shard_update_stream(l->shard), err) < 0)
            return -1;
    }
    return 0;
}

int pretrained_load(const struct pretrained *pretrained, const struct model *model,
                    struct shard *shard, bool allow_nonfinite, struct error *err)
{
    if (pretrained_check(pretrained, model, NULL, err) < 0)
        return -1;
    struct loading l = {.pretrained = pretrained,
                        .shard = shard,
                        .model = model,
                        .allow_nonfinite = allow_nonfinite};
    auto_free float *values = xmalloc(CHUNK_ELEMENTS * sizeof *values);
    auto_free float *others = xmalloc(CHUNK_ELEMENTS * sizeof *others);
    auto_free float *raw = xmalloc(CHUNK_ELEMENTS * sizeof *raw);
    l.values = values, l.others = others, l.raw = raw;
    int count;
    const struct param_range *ranges = shard_ranges(shard, &count);
    for (int i = 0; i < count; i++)
        if (load_range(&l, &ranges[i], err) < 0)
            return -1;
    shard_values_changed(shard);
    return 0;
}
