#include "agent/checkpoint/checkpoint_index.h"

#include "agent/checkpoint/tensor_values.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int index_open_file(const char *path, const struct manifest_file *listed,
                    struct safetensors **ret_file, struct error *err)
{
    auto_free char *file_path = xasprintf("%s/%s", path, listed->path);
    struct safetensors *file;
    if (safetensors_open(file_path, &file, err) < 0)
        return error_wrap(err, "damaged checkpoint");
    /* Every rank opens every file to look for its ranges, but reads data from few. The header's own
     * checksum makes the index safe without reading gigabytes. */
    if (safetensors_hash_header(file) != listed->head_xxh64) {
        safetensors_close(file);
        return error_set(err, ERR_INPUT, "%s: damaged: its header is not what was saved",
                         file_path);
    }
    *ret_file = file;
    return 0;
}

int index_verify_file(const char *path, const struct manifest_file *listed,
                      const struct safetensors *file, struct error *err)
{
    uint64_t xxh64;
    if (safetensors_hash(file, &xxh64, err) < 0)
        return -1;
    if (xxh64 != listed->xxh64)
        return error_set(err, ERR_INPUT,
                         "%s/%s: damaged: its checksum is %016" PRIx64 ", saved was %016" PRIx64,
                         path, listed->path, xxh64, listed->xxh64);
    return 0;
}

/* Where a file says that one of its boxes begins. */
static int decode_offset(const struct json *info, struct index_entry *e)
{
    const struct json *entry = json_get(info, e->tensor.name);
    const struct json *offsets = json_get(entry, CHECKPOINT_SAVED_OFFSETS);
    if (e->tensor.dims > BOX_MAX_DIMS || !json_is_array(offsets) ||
        (int)json_array_count(offsets) != e->tensor.dims)
        return -1;
    for (int d = 0; d < e->tensor.dims; d++) {
        const struct json *offset = json_at(offsets, (size_t)d);
        e->offset[d] = json_as_integer(offset);
        if (!json_is_integer(offset) || e->offset[d] < 0 ||
            e->offset[d] > INT64_MAX - e->tensor.shape[d])
            return -1;
    }
    return 0;
}

static int decode_entries(struct arena *arena, const struct manifest_file *listed,
                          const struct safetensors_header *header, struct index_entry *entries,
                          struct error *err)
{
    const char *note = safetensors_get_metadata(header, CHECKPOINT_METADATA_OFFSETS);
    struct json *info = note ? json_parse_text(note, JSON_STRICT, NULL) : NULL;
    int result = 0;
    for (int i = 0; i < header->tensor_count && result == 0; i++) {
        entries[i] = (struct index_entry){.file = listed, .tensor = header->tensors[i]};
        entries[i].tensor.name = arena_strdup(arena, header->tensors[i].name);
        if (decode_offset(info, &entries[i]) < 0)
            result = error_set(err, ERR_INPUT,
                               "%s: tensor %.80s: no usable " CHECKPOINT_METADATA_OFFSETS,
                               listed->path, entries[i].tensor.name);
    }
    json_free(info);
    return result;
}

static int add_file(struct arena *arena, const char *path, const struct manifest_file *listed,
                    struct index_entry **entries, int *count, struct error *err)
{
    struct safetensors *file;
    if (index_open_file(path, listed, &file, err) < 0)
        return -1;
    const struct safetensors_header *header = safetensors_header(file);
    size_t total = (size_t)*count + (size_t)header->tensor_count;
    *entries = xrealloc(*entries, total * sizeof **entries);
    int result = decode_entries(arena, listed, header, *entries + *count, err);
    *count = (int)total;
    safetensors_close(file);
    return result;
}

static int compare_names(const void *a, const void *b)
{
    const struct index_entry *x = a, *y = b;
    return strcmp(x->tensor.name, y->tensor.name);
}

int index_build(struct arena *arena, const char *path, const struct manifest *manifest,
                enum checkpoint_part part, struct checkpoint_index *ret_index, struct error *err)
{
    auto_free char *prefix = xasprintf("%s/", checkpoint_part_name(part));
    auto_free struct index_entry *entries = xmalloc(sizeof *entries);
    int count = 0;
    for (int i = 0; i < manifest->file_count; i++) {
        const struct manifest_file *listed = &manifest->files[i];
        if (str_starts_with(listed->path, prefix) &&
            add_file(arena, path, listed, &entries, &count, err) < 0)
            return -1;
    }
    qsort(entries, (size_t)count, sizeof *entries, compare_names);
    ret_index->entries = arena_array(arena, struct index_entry, count);
    memcpy(ret_index->entries, entries, (size_t)count * sizeof *entries);
    ret_index->count = count;
    return 0;
}

static int compare_firsts(const void *a, const void *b)
{
    const struct index_entry *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static void print_shape(int dims, const int64_t *shape, char *out, size_t room)
{
    size_t length = (size_t)snprintf(out, room, "[");
    for (int d = 0; d < dims && length < room; d++)
        length +=
            (size_t)snprintf(out + length, room - length, "%s%" PRId64, d ? ", " : "", shape[d]);
    if (length < room)
        snprintf(out + length, room - length, "]");
}

/* The whole shape reaches as far as any of the boxes does. */
static int check_shape(const struct index_entry *entries, int count,
                       const struct tensor_range *range, struct error *err)
{
    int64_t whole[BOX_MAX_DIMS] = {0};
    int dims = entries[0].tensor.dims;
    bool same = dims == range->dims;
    for (int i = 0; i < count; i++) {
        same = same && entries[i].tensor.dims == dims;
        for (int d = 0; d < entries[i].tensor.dims; d++) {
            int64_t end = entries[i].offset[d] + entries[i].tensor.shape[d];
            whole[d] = end > whole[d] ? end : whole[d];
        }
    }
    for (int d = 0; d < dims && same; d++)
        same = whole[d] == range->shape[d];
    if (same)
        return 0;
    char saved[96], wanted[96];
    print_shape(dims, whole, saved, sizeof saved);
    print_shape(range->dims, range->shape, wanted, sizeof wanted);
    return error_set(err, ERR_SHAPE,
                     "tensor %s was saved with shape %s, the model has %s: another model's "
                     "checkpoint",
                     range->name, saved, wanted);
}

int index_find(const struct checkpoint_index *index, const struct tensor_range *range,
               struct index_entry **ret_entries, int *ret_count, struct error *err)
{
    int low = 0, high = index->count; /* the first entry whose name is not below the range's */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(index->entries[middle].tensor.name, range->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct index_entry *entries = index->entries + low;
    int count = 0;
    while (low + count < index->count && strcmp(entries[count].tensor.name, range->name) == 0)
        count++;
    if (count == 0)
        return error_set(err, ERR_CONFIG,
                         "there is no tensor %s in it: saved from another model, or with another "
                         "optimizer or optimizer.momentum 0",
                         range->name);
    if (check_shape(entries, count, range, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        struct index_entry *e = &entries[i];
        if (!tensor_has_values(e->tensor.dtype))
            return error_set(err, ERR_INPUT, "tensor %s was saved as %s, expected F32, F16 or BF16",
                             range->name, safetensors_dtype_name(e->tensor.dtype));
        if (!box_is_range(range->dims, range->shape, e->offset, e->tensor.shape, &e->first))
            return error_set(err, ERR_INPUT,
                             "tensor %s: %s has a part of it that is not a run of "
                             "elements",
                             range->name, e->file->path);
    }
    /* In the tensor's order, so that the caller can fill its range from left to right and sees a
     * gap at once. */
    qsort(entries, (size_t)count, sizeof *entries, compare_firsts);
    *ret_entries = entries;
    *ret_count = count;
    return 0;
}
