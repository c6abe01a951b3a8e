#include "agent/checkpoint/safetensors.h"

#include <assert.h>
#include <jansson.h>
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

static int64_t place(struct safetensors_tensor *t, int64_t begin)
{
    t->count = 1;
    for (int d = 0; d < t->dims; d++)
        t->count *= t->shape[d];
    t->data_begin = begin;
    return begin + t->count * safetensors_dtype_bytes(t->dtype);
}

static json_t *describe(const struct safetensors_tensor *t, int64_t end)
{
    json_t *shape = json_array();
    for (int d = 0; d < t->dims; d++)
        json_array_append_new(shape, json_integer(t->shape[d]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_dtype_name(t->dtype), "shape",
                     shape, "data_offsets", (json_int_t)t->data_begin, (json_int_t)end);
}

static json_t *describe_notes(const struct safetensors_note *notes, int count)
{
    json_t *metadata = json_pack("{s:s}", "format", "pt"); /* what Hugging Face's loaders ask for */
    for (int i = 0; i < count; i++)
        json_object_set_new(metadata, notes[i].key, json_string(notes[i].value));
    return metadata;
}

void safetensors_lay_out(struct arena *arena, struct safetensors_tensor *tensors, int count,
                         const struct safetensors_note *notes, int note_count,
                         struct safetensors_layout *ret_layout)
{
    struct safetensors_tensor **order = arena_array(arena, struct safetensors_tensor *, count + 1);
    for (int i = 0; i < count; i++)
        order[i] = &tensors[i];
    qsort(order, (size_t)count, sizeof *order, compare);

    json_t *root = json_object();
    json_object_set_new(root, "__metadata__", describe_notes(notes, note_count));
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        end = place(order[i], end);
        assert(!json_object_get(root, order[i]->name));
        json_object_set_new(root, order[i]->name, describe(order[i], end));
    }
    char *text = json_dumps(root, JSON_COMPACT);
    assert(text);
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    char *header = arena_alloc(arena, 8 + padded);
    uint64_t stored = padded;
    memcpy(header, &stored, 8);
    memcpy(header + 8, text, length);
    memset(header + 8 + length, ' ', padded - length);
    free(text);
    json_decref(root);
    *ret_layout = (struct safetensors_layout){
        .header = header,
        .header_bytes = 8 + (int64_t)padded,
        .order = (const struct safetensors_tensor **)order,
        .count = count,
        .file_bytes = 8 + (int64_t)padded + end,
    };
}
