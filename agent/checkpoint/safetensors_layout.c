#include "agent/checkpoint/safetensors.h"
#include "base/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The widest dtype first keeps everything aligned; the name makes the order total. */
static int compare(const void *a, const void *b)
{
    const struct safetensors_tensor *x = *(const struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *y = *(const struct safetensors_tensor *const *)b;
    int x_bytes = safetensors_dtype_bytes(x->dtype), y_bytes = safetensors_dtype_bytes(y->dtype);
    if (x_bytes != y_bytes)
        return y_bytes - x_bytes;
    return strcmp(x->name, y->name);
}

static int64_t set_offsets(struct safetensors_tensor *t, int64_t begin)
{
    t->count = 1;
    for (int d = 0; d < t->dims; d++)
        t->count *= t->shape[d];
    t->data_begin = begin;
    return begin + t->count * safetensors_dtype_bytes(t->dtype);
}

static struct json *describe(const struct safetensors_tensor *t, int64_t end)
{
    struct json *shape = json_new_array();
    for (int d = 0; d < t->dims; d++)
        json_append(shape, json_new_integer(t->shape[d]));
    return json_object_of(
        "dtype", json_new_text(safetensors_dtype_name(t->dtype)), "shape", shape, "data_offsets",
        json_array_of(json_new_integer(t->data_begin), json_new_integer(end), NULL), NULL);
}

static struct json *describe_metadata(const struct safetensors_metadata *entries, int count)
{
    struct json *metadata =
        json_texts_of("format", "pt", NULL); /* what Hugging Face's loaders ask for */
    for (int i = 0; i < count; i++)
        json_set(metadata, entries[i].key, json_new_text(entries[i].value));
    return metadata;
}

void safetensors_lay_out(struct arena *arena, struct safetensors_tensor *tensors, int count,
                         const struct safetensors_metadata *metadata, int metadata_count,
                         struct safetensors_layout *ret_layout)
{
    struct safetensors_tensor **order = arena_array(arena, struct safetensors_tensor *, count + 1);
    for (int i = 0; i < count; i++)
        order[i] = &tensors[i];
    qsort(order, (size_t)count, sizeof *order, compare);

    struct json *root = json_new_object();
    json_set(root, "__metadata__", describe_metadata(metadata, metadata_count));
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        end = set_offsets(order[i], end);
        assert(!json_get(root, order[i]->name));
        json_set(root, order[i]->name, describe(order[i], end));
    }
    char *text = json_print(root, JSON_COMPACT);
    assert(text);
    /* The format pads its header with blanks to 8 bytes: with the 8 bytes of its length all data
     * begins aligned for any dtype. */
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    char *header = arena_alloc(arena, 8 + padded);
    uint64_t stored = padded;
    memcpy(header, &stored, 8);
    memcpy(header + 8, text, length);
    memset(header + 8 + length, ' ', padded - length);
    free(text);
    json_free(root);
    *ret_layout = (struct safetensors_layout){
        .header = header,
        .header_bytes = 8 + (int64_t)padded,
        .order = (const struct safetensors_tensor **)order,
        .count = count,
        .file_bytes = 8 + (int64_t)padded + end,
    };
}
