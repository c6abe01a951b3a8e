#include "agent/checkpoint/pretrained_index.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain_name(const char *file)
{
    return file[0] && !strchr(file, '/') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct pretrained_place *x = a, *y = b;
    return strcmp(x->tensor, y->tensor);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file once. */
static void list_files(struct arena *arena, struct pretrained_index *index)
{
    index->files = arena_array(arena, const char *, index->place_count);
    for (int i = 0; i < index->place_count; i++)
        index->files[i] = index->places[i].file;
    qsort(index->files, (size_t)index->place_count, sizeof *index->files, compare_texts);
    for (int i = 0; i < index->place_count; i++)
        if (index->file_count == 0 ||
            strcmp(index->files[index->file_count - 1], index->files[i]) != 0)
            index->files[index->file_count++] = index->files[i];
}

static int read_map(struct arena *arena, const char *path, const json_t *map,
                    struct pretrained_index *index, struct error *err)
{
    const char *tensor;
    json_t *file;
    index->places = arena_array(arena, struct pretrained_place, json_object_size(map));
    json_object_foreach((json_t *)map, tensor, file)
    {
        const char *name = json_string_value(file);
        if (!name || !is_plain_name(name))
            return error_set(
                err, ERR_INPUT, "%s: weight_map.%s: must name a file beside it, not %s%s%s", path,
                tensor, name ? "\"" : "", name ? name : "another kind of value", name ? "\"" : "");
        index->places[index->place_count++] =
            (struct pretrained_place){arena_strdup(arena, tensor), arena_strdup(arena, name)};
    }
    qsort(index->places, (size_t)index->place_count, sizeof *index->places, compare_places);
    list_files(arena, index);
    if (index->file_count > PRETRAINED_MAX_FILES)
        return error_set(err, ERR_INPUT, "%s: %d files: at most %d are supported", path,
                         index->file_count, PRETRAINED_MAX_FILES);
    return 0;
}

int pretrained_index_parse(struct arena *arena, const char *path, const char *text, size_t bytes,
                           struct pretrained_index *ret_index, struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return error_set(err, ERR_INPUT, "%s: line %d: %s", path, where.line, where.text);
    const json_t *map = json_object_get(root, "weight_map");
    struct pretrained_index index = {0};
    int result = json_object_size(map) > 0
                     ? read_map(arena, path, map, &index, err)
                     : error_set(err, ERR_INPUT, "%s: weight_map: missing or empty", path);
    json_decref(root);
    if (result == 0)
        *ret_index = index;
    return result;
}

void pretrained_index_print(const struct pretrained_place *places, int count, int64_t total_bytes,
                            struct str *out)
{
    json_t *map = json_object();
    for (int i = 0; i < count; i++)
        json_object_set_new(map, places[i].tensor, json_string(places[i].file));
    json_t *root = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total_bytes,
                             "weight_map", map);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
    str_add(out, text);
    str_add(out, "\n");
    free(text);
    json_decref(root);
}
