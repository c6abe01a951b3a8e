/* The values of a directory's tensors: into this rank's slices, and compared with each other. */
#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/pretrained_internal.h"
#include "agent/checkpoint/tensor_values.h"
#include "base/mem.h"

#include <string.h>

enum { CHUNK_ELEMENTS = 1 << 20 }; /* read and converted at once */

static int read_floats(const struct pretrained *p, struct pretrained_location location,
                       int64_t first, int64_t count, void *raw, float *ret_values,
                       struct error *err)
{
    return tensor_read_values(p->files[location.file], location.tensor, first, count, raw,
                              ret_values, err);
}

/* Tensors that differ do so early: more is not read. */
int pretrained_tensors_differ(const struct pretrained *p, const char *name, const char *other,
                              bool *ret_differ, struct error *err)
{
    struct pretrained_location one = pretrained_find(p, name), two = pretrained_find(p, other);
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
        struct pretrained_location location = pretrained_find(l->pretrained, tie->name);
        if (tie->param != param || !location.tensor)
            continue;
        if (location.tensor->count != param->count)
            return error_set(err, ERR_INPUT,
                             "%s: tensor %s has another shape than %s, which it is "
                             "tied to",
                             l->pretrained->dir, tie->name, param->name);
        if (read_floats(l->pretrained, location, first, count, l->raw, l->others, err) < 0)
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
static int check_finite(const struct loading *l, struct pretrained_location location, int64_t first,
                        int64_t count, struct error *err)
{
    const struct pretrained *p = l->pretrained;
    const struct safetensors_tensor *t = location.tensor;
    enum safetensors_dtype dtype = tensor_dtype_of(shard_dtype(l->shard));
    struct nonfinite found;
    if (l->allow_nonfinite || !nonfinite_find(dtype, l->values, count, &found))
        return 0;
    found.element += first;
    nonfinite_error(ERR_INPUT, t->name, t->dims, t->shape, &found, err);
    return error_wrap(err, "%s/%s", p->dir, p->names[location.file]);
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
    struct pretrained_location location =
        pretrained_find_param(l->pretrained, l->model, range->param);
    if (!location.tensor) /* a head's */
        return 0;
    for (int64_t done = 0; done < range->count; done += CHUNK_ELEMENTS) {
        int64_t count = range->count - done < CHUNK_ELEMENTS ? range->count - done : CHUNK_ELEMENTS;
        int64_t first = range->param_offset + done;
        if (read_floats(l->pretrained, location, first, count, l->raw, l->values, err) < 0 ||
            compare_ties(l, range->param, first, count, err) < 0)
            return -1;
        dtype_narrow(shard_dtype(l->shard), l->values, count);
        if (check_finite(l, location, first, count, err) < 0)
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
