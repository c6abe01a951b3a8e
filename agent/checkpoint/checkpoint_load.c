/* Loading looks every range up by name and offset, whoever wrote it, and then reads file by file,
 * so that each file is opened and verified once. */
#include "agent/checkpoint/checkpoint_index.h"
#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/tensor_values.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { TEXT_MAX_BYTES = 1 << 20, CHUNK_ELEMENTS = 1 << 16 };

struct checkpoint {
    struct arena *arena;
    char *path;
    struct manifest manifest;
    struct checkpoint_state state;
    bool *is_verified; /* [manifest.file_count]: read whole once, and its checksum is right */
};

/* ---- opening ---- */

static const struct manifest_file *find_listed(const struct checkpoint *c, const char *name)
{
    for (int i = 0; i < c->manifest.file_count; i++)
        if (strcmp(c->manifest.files[i].path, name) == 0)
            return &c->manifest.files[i];
    return NULL;
}

/* A small file, as it was saved. The caller frees *ret_text. */
static int read_listed(const char *path, const struct manifest_file *listed, char **ret_text,
                       size_t *ret_bytes, struct error *err)
{
    if (file_read(path, TEXT_MAX_BYTES, ret_text, ret_bytes, err) < 0)
        return -1;
    if (XXH64(*ret_text, *ret_bytes, 0) == listed->xxh64)
        return 0;
    free(*ret_text);
    *ret_text = NULL;
    return error_set(err, ERR_INPUT, "%s: damaged: it is not what was saved", path);
}

static int read_state(struct checkpoint *c, struct error *err)
{
    const struct manifest_file *listed = find_listed(c, CHECKPOINT_STATE);
    auto_free char *path = xasprintf("%s/" CHECKPOINT_STATE, c->path);
    if (!listed)
        return error_set(err, ERR_INPUT, "%s: the manifest does not list it", path);
    auto_free char *text = NULL;
    size_t bytes;
    if (read_listed(path, listed, &text, &bytes, err) < 0)
        return -1;
    return checkpoint_state_parse(c->arena, path, text, bytes, &c->state, err);
}

int checkpoint_open(const char *path, struct checkpoint **ret_checkpoint, struct error *err)
{
    struct checkpoint *c = xcalloc(1, sizeof *c);
    c->arena = arena_open();
    c->path = xstrdup(path);
    if (checkpoint_read_manifest(c->arena, path, &c->manifest, err) < 0 || read_state(c, err) < 0) {
        checkpoint_close(c);
        return -1;
    }
    c->is_verified = arena_array(c->arena, bool, c->manifest.file_count);
    *ret_checkpoint = c;
    return 0;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    arena_close(checkpoint->arena);
    free(checkpoint->path);
    free(checkpoint);
}

const struct checkpoint_state *checkpoint_get_state(const struct checkpoint *checkpoint)
{
    return &checkpoint->state;
}

int checkpoint_read_text(struct checkpoint *checkpoint, enum checkpoint_text text,
                         const char **ret_text, struct error *err)
{
    const char *name = checkpoint_text_name(text);
    const struct manifest_file *listed = find_listed(checkpoint, name);
    *ret_text = NULL;
    if (!listed)
        return 0;
    auto_free char *path = xasprintf("%s/%s", checkpoint->path, name);
    auto_free char *content = NULL;
    size_t bytes;
    if (read_listed(path, listed, &content, &bytes, err) < 0)
        return -1;
    *ret_text = arena_strndup(checkpoint->arena, content, bytes);
    return 0;
}

/* ---- loading ---- */

/* Elements to read from one file. */
struct transfer {
    const struct index_entry *entry;
    int64_t first, count;             /* within the entry */
    const struct tensor_range *range; /* that they belong to */
    char *data;                       /* of the range's dtype */
};

struct plan {
    struct transfer *items;
    int count, capacity;
    bool allow_nonfinite;
};

static void plan_add(struct plan *plan, struct transfer transfer)
{
    if (plan->count == plan->capacity) {
        plan->capacity = plan->capacity ? 2 * plan->capacity : 64;
        plan->items = xrealloc(plan->items, (size_t)plan->capacity * sizeof *plan->items);
    }
    plan->items[plan->count++] = transfer;
}

/* Finds all elements of a range. */
static int plan_range(const struct checkpoint_index *index, const struct tensor_range *range,
                      struct plan *plan, struct error *err)
{
    struct index_entry *entries;
    int count;
    if (index_find(index, range, &entries, &count, err) < 0)
        return -1;
    int64_t at = range->first, end = range->first + range->count;
    /* Entries before the range are skipped. One that begins behind `at` leaves a gap, which ends
     * the loop and is an error. */
    for (int i = 0; i < count && at < end && entries[i].first <= at; i++) {
        int64_t there = entries[i].first + entries[i].tensor.count;
        int64_t stop = there < end ? there : end;
        if (stop <= at)
            continue;
        size_t offset = (size_t)(at - range->first) * dtype_bytes(range->dtype);
        plan_add(plan, (struct transfer){&entries[i], at - entries[i].first, stop - at, range,
                                         (char *)range->data + offset});
        at = stop;
    }
    if (at == end)
        return 0;
    return error_set(err, ERR_INPUT, "element %" PRId64 " of tensor %s is in none of its files", at,
                     range->name);
}

/* By the address of their entries in the manifest, which is the order of the manifest. */
static int compare_files(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;
    const struct manifest_file *f = x->entry->file, *g = y->entry->file;
    return (f > g) - (f < g);
}

/* As it was saved, or converted: a run may keep its numbers in another dtype than the one that
 * saved, and checkpoints of bf16 runs were fp32 once. */
static int read_transfer(const struct safetensors *file, const struct transfer *t,
                         struct error *err)
{
    const struct safetensors_tensor *tensor = &t->entry->tensor;
    enum dtype dtype = t->range->dtype;
    if (tensor->dtype == tensor_dtype_of(dtype))
        return safetensors_read(file, tensor, t->first, t->count, t->data, err);
    auto_free float *raw = xmalloc(CHUNK_ELEMENTS * sizeof *raw);
    auto_free float *values = xmalloc(CHUNK_ELEMENTS * sizeof *values);
    for (int64_t done = 0; done < t->count; done += CHUNK_ELEMENTS) {
        int64_t count = t->count - done < CHUNK_ELEMENTS ? t->count - done : CHUNK_ELEMENTS;
        if (tensor_read_values(file, tensor, t->first + done, count, raw, values, err) < 0)
            return -1;
        dtype_narrow(dtype, values, count);
        size_t size = dtype_bytes(dtype);
        memcpy(t->data + (size_t)done * size, values, (size_t)count * size);
    }
    return 0;
}

/* As it came to lie in memory: a large fp32 may be infinite in bf16. */
static int check_transfer(const struct checkpoint *c, const struct transfer *t, struct error *err)
{
    struct nonfinite found;
    if (!nonfinite_find(tensor_dtype_of(t->range->dtype), t->data, t->count, &found))
        return 0;
    found.element += t->entry->first + t->first;
    nonfinite_error(ERR_INPUT, t->range->name, t->range->dims, t->range->shape, &found, err);
    return error_wrap(err, "%s/%s", c->path, t->entry->file->path);
}

/* Reads the transfers of one file: items[0 .. count). */
static int read_file(const struct checkpoint *c, const struct transfer *items, int count,
                     bool allow_nonfinite, struct error *err)
{
    const struct manifest_file *listed = items[0].entry->file;
    struct safetensors *file;
    if (index_open_file(c->path, listed, &file, err) < 0)
        return -1;
    /* Verified before a number of it is used: half of a damaged file must not reach the weights.
     * The second reading comes from the page cache. An export comes here for each of its files. */
    bool *is_verified = &c->is_verified[listed - c->manifest.files];
    int result = *is_verified ? 0 : index_verify_file(c->path, listed, file, err);
    *is_verified = result == 0;
    for (int i = 0; i < count && result == 0; i++) {
        result = read_transfer(file, &items[i], err);
        if (result == 0 && !allow_nonfinite)
            result = check_transfer(c, &items[i], err);
    }
    safetensors_close(file);
    return result;
}

static int read_files(const struct checkpoint *c, struct plan *plan, struct error *err)
{
    if (plan->count > 0)
        qsort(plan->items, (size_t)plan->count, sizeof *plan->items, compare_files);
    for (int i = 0, next; i < plan->count; i = next) {
        for (next = i + 1; next < plan->count; next++)
            if (plan->items[next].entry->file != plan->items[i].entry->file)
                break;
        if (read_file(c, plan->items + i, next - i, plan->allow_nonfinite, err) < 0)
            return -1;
    }
    return 0;
}

int checkpoint_read_dtype(const struct checkpoint *checkpoint, enum checkpoint_part part,
                          enum dtype *ret_dtype, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct checkpoint_index index;
    if (index_build(arena, checkpoint->path, &checkpoint->manifest, part, &index, err) < 0)
        return -1;
    *ret_dtype = index.count > 0 ? DTYPE_BF16 : DTYPE_F32;
    for (int i = 0; i < index.count; i++)
        if (index.entries[i].tensor.dtype != SAFETENSORS_BF16)
            *ret_dtype = DTYPE_F32;
    return 0;
}

int checkpoint_load(struct checkpoint *checkpoint, enum checkpoint_part part,
                    const struct tensor_ranges *ranges, bool allow_nonfinite, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct checkpoint_index index;
    if (index_build(arena, checkpoint->path, &checkpoint->manifest, part, &index, err) < 0)
        return -1;
    struct plan plan = {.allow_nonfinite = allow_nonfinite};
    int result = 0;
    for (int i = 0; i < ranges->count && result == 0; i++)
        if ((result = plan_range(&index, &ranges->items[i], &plan, err)) < 0)
            error_wrap(err, "%s", checkpoint->path);
    if (result == 0)
        result = read_files(checkpoint, &plan, err);
    free(plan.items);
    return result;
}
