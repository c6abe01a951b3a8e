/* Decodes and checks a header. Every rule of the reference implementation is here, and one of ours:
 * data that is not aligned to its element size is refused. */
#include "agent/checkpoint/safetensors.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_KEY "__metadata__"

static const struct {
    const char *name;
    int bytes;
} dtypes[] = {
    [SAFETENSORS_F64] = {"F64", 8},   [SAFETENSORS_I64] = {"I64", 8},
    [SAFETENSORS_U64] = {"U64", 8},   [SAFETENSORS_F32] = {"F32", 4},
    [SAFETENSORS_I32] = {"I32", 4},   [SAFETENSORS_U32] = {"U32", 4},
    [SAFETENSORS_F16] = {"F16", 2},   [SAFETENSORS_BF16] = {"BF16", 2},
    [SAFETENSORS_I16] = {"I16", 2},   [SAFETENSORS_U16] = {"U16", 2},
    [SAFETENSORS_I8] = {"I8", 1},     [SAFETENSORS_U8] = {"U8", 1},
    [SAFETENSORS_BOOL] = {"BOOL", 1},
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

int safetensors_dtype_bytes(enum safetensors_dtype dtype)
{
    return dtypes[dtype].bytes;
}

/* What is being checked; the names are for errors. */
struct check {
    struct arena *arena;
    const char *file, *tensor;
    struct error *err;
};

static int reject(const struct check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int reject(const struct check *c, const char *format, ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    utf8_make_printable(what, strlen(what)); /* it may quote the file */
    if (!c->tensor)
        return error_set(c->err, ERR_INPUT, "%s: %s", c->file, what);
    return error_set(c->err, ERR_INPUT, "%s: tensor %.80s: %s", c->file, c->tensor, what);
}

static int decode_dtype(const struct check *c, const struct json *entry,
                        enum safetensors_dtype *ret)
{
    const char *name = json_as_text(json_get(entry, "dtype"));
    if (!name)
        return reject(c, "has no dtype");
    for (size_t i = 0; i < array_length(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *ret = (enum safetensors_dtype)i;
            return 0;
        }
    }
    return reject(c, "dtype %.20s is not one that can be read", name);
}

static int decode_shape(const struct check *c, const struct json *entry,
                        struct safetensors_tensor *t)
{
    const struct json *shape = json_get(entry, "shape");
    if (!json_is_array(shape))
        return reject(c, "has no shape");
    if (json_array_count(shape) > SAFETENSORS_MAX_DIMS)
        return reject(c, "%zu dimensions; at most %d are read", json_array_count(shape),
                      SAFETENSORS_MAX_DIMS);
    t->dims = (int)json_array_count(shape);
    t->count = 1;
    for (int d = 0; d < t->dims; d++) {
        const struct json *size = json_at(shape, (size_t)d);
        t->shape[d] = json_as_integer(size);
        if (!json_is_integer(size) || t->shape[d] < 0)
            return reject(c, "dimension %d of its shape is not a number >= 0", d);
        if (__builtin_mul_overflow(t->count, t->shape[d], &t->count))
            return reject(c, "the product of its shape is too large");
    }
    return 0;
}

/* Each number is of somebody else's file: every product is checked before it is used, so that no
 * read can leave the data. */
static int decode_range(const struct check *c, const struct json *entry, int64_t data_bytes,
                        struct safetensors_tensor *t)
{
    const struct json *range = json_get(entry, "data_offsets");
    const struct json *first = json_at(range, 0), *second = json_at(range, 1);
    if (json_array_count(range) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return reject(c, "data_offsets are not two numbers");
    long long begin = json_as_integer(first), end = json_as_integer(second);
    if (begin < 0 || end < begin || end > data_bytes)
        return reject(c, "data_offsets [%lld, %lld] are not within the %lld bytes of data", begin,
                      end, (long long)data_bytes);
    int64_t bytes;
    if (__builtin_mul_overflow(t->count, dtypes[t->dtype].bytes, &bytes) || bytes != end - begin)
        return reject(c, "%lld elements of %s do not fill data_offsets [%lld, %lld]",
                      (long long)t->count, dtypes[t->dtype].name, begin, end);
    if (begin % dtypes[t->dtype].bytes != 0)
        return reject(c, "data_offsets [%lld, %lld] are not aligned to the %d bytes of %s", begin,
                      end, dtypes[t->dtype].bytes, dtypes[t->dtype].name);
    t->data_begin = begin;
    return 0;
}

/* Names end up in messages and file names: one line of printable text. */
static int check_name(const struct check *c, const char *name)
{
    size_t length = strlen(name);
    if (length > SAFETENSORS_MAX_NAME_BYTES)
        return reject(c, "a tensor name of %zu bytes; at most %d are read", length,
                      SAFETENSORS_MAX_NAME_BYTES);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return reject(c, "a tensor name has a control character in it");
    return 0;
}

static int decode_tensor(struct check *c, const char *name, const struct json *entry,
                         int64_t data_bytes, struct safetensors_tensor *t)
{
    if (check_name(c, name) < 0)
        return -1;
    c->tensor = name;
    if (!json_is_object(entry))
        return reject(c, "its entry is not an object");
    t->name = arena_strdup(c->arena, name);
    if (decode_dtype(c, entry, &t->dtype) < 0 || decode_shape(c, entry, t) < 0 ||
        decode_range(c, entry, data_bytes, t) < 0)
        return -1;
    c->tensor = NULL;
    return 0;
}

static int decode_metadata(const struct check *c, struct json *metadata,
                           struct safetensors_header *h)
{
    if (!json_is_object(metadata))
        return reject(c, METADATA_KEY " is not an object");
    h->metadata = arena_array(c->arena, struct safetensors_metadata, json_object_count(metadata));
    struct json *value;
    json_each_member(value, metadata) {
        const char *key = json_key(value);
        if (!json_is_string(value))
            return reject(c, METADATA_KEY " has a value that is not a string");
        h->metadata[h->metadata_count++] = (struct safetensors_metadata){
            arena_strdup(c->arena, key), arena_strdup(c->arena, json_as_text(value))};
    }
    return 0;
}

static int64_t data_end(const struct safetensors_tensor *t)
{
    return t->data_begin + t->count * dtypes[t->dtype].bytes;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->data_begin != y->data_begin)
        return x->data_begin < y->data_begin ? -1 : 1;
    int64_t x_end = data_end(x), y_end = data_end(y);
    return (x_end > y_end) - (x_end < y_end);
}

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The ranges must tile the data: no gap, no overlap, nothing left over. Sorts by offset. */
static int check_tiling(struct check *c, struct safetensors_header *h, int64_t data_bytes)
{
    qsort(h->tensors, (size_t)h->tensor_count, sizeof *h->tensors, compare_offsets);
    int64_t end = 0;
    for (int i = 0; i < h->tensor_count; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        c->tensor = t->name;
        if (t->data_begin != end)
            return reject(c, "its data begins at %lld, but the data before it ends at %lld (%s)",
                          (long long)t->data_begin, (long long)end,
                          t->data_begin < end ? "overlap" : "gap");
        end = data_end(t);
    }
    c->tensor = NULL;
    if (end != data_bytes)
        return reject(c, "%lld bytes follow the last tensor's data", (long long)(data_bytes - end));
    return 0;
}

static int decode(struct check *c, struct json *root, int64_t data_bytes,
                  struct safetensors_header *h)
{
    h->tensors = arena_array(c->arena, struct safetensors_tensor, json_object_count(root));
    struct json *entry;
    json_each_member(entry, root) {
        const char *name = json_key(entry);
        int result = strcmp(name, METADATA_KEY) == 0
                         ? decode_metadata(c, entry, h)
                         : decode_tensor(c, name, entry, data_bytes, &h->tensors[h->tensor_count]);
        if (result < 0)
            return -1;
        h->tensor_count += strcmp(name, METADATA_KEY) != 0;
    }
    if (check_tiling(c, h, data_bytes) < 0)
        return -1;
    qsort(h->tensors, (size_t)h->tensor_count, sizeof *h->tensors, compare_names);
    return 0;
}

int safetensors_header_bytes(const char *name, const uint8_t *bytes, size_t size,
                             int64_t file_bytes, int64_t *ret_bytes, struct error *err)
{
    const struct check c = {.file = name, .err = err};
    if (size < 8)
        return reject(&c, "%zu bytes are too few for a safetensors file", size);
    uint64_t length;
    memcpy(&length, bytes, 8);
    length = le64toh(length);
    if (length > SAFETENSORS_MAX_HEADER_BYTES)
        return reject(&c, "its header claims %llu bytes; at most %d are read",
                      (unsigned long long)length, SAFETENSORS_MAX_HEADER_BYTES);
    if ((int64_t)length > file_bytes - 8)
        return reject(&c, "its header claims %llu bytes, the file has only %lld",
                      (unsigned long long)length, (long long)file_bytes);
    *ret_bytes = 8 + (int64_t)length;
    return 0;
}

int safetensors_parse(struct arena *arena, const char *name, const uint8_t *bytes, size_t size,
                      int64_t file_bytes, struct safetensors_header *ret_header, struct error *err)
{
    struct check c = {.arena = arena, .file = name, .err = err};
    struct safetensors_header h = {0};
    if (safetensors_header_bytes(name, bytes, size, file_bytes, &h.header_bytes, err) < 0)
        return -1;
    assert(size >= (size_t)h.header_bytes);
    if (h.header_bytes == 8 || bytes[8] != '{')
        return reject(&c, "its header does not begin with {: not a safetensors file");
    struct json *root =
        json_parse((const char *)bytes + 8, (size_t)h.header_bytes - 8, JSON_STRICT, err);
    if (!root)
        return error_wrap(err, "%s: header", name);
    int result = decode(&c, root, file_bytes - h.header_bytes, &h);
    json_free(root);
    if (result == 0)
        *ret_header = h;
    return result;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors_header *header,
                                                  const char *name)
{
    const struct safetensors_tensor key = {.name = name};
    if (header->tensor_count == 0)
        return NULL;
    return bsearch(&key, header->tensors, (size_t)header->tensor_count, sizeof key, compare_names);
}

const char *safetensors_get_metadata(const struct safetensors_header *header, const char *key)
{
    for (int i = 0; i < header->metadata_count; i++)
        if (strcmp(header->metadata[i].key, key) == 0)
            return header->metadata[i].value;
    return NULL;
}
