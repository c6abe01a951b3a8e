#include "agent/checkpoint/pretrained_index.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* The index comes from the net: a name with a slash could lead anywhere. */
static bool is_plain_name(const char *file)
{
    return file[0] && !strchr(file, '/') && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct pretrained_entry *x = a, *y = b;
    return strcmp(x->tensor, y->tensor);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file once. */
static void list_files(struct arena *arena, struct pretrained_index *index)
{
    index->files = arena_array(arena, const char *, index->entry_count);
    for (int i = 0; i < index->entry_count; i++)
        index->files[i] = index->entries[i].file;
    qsort(index->files, (size_t)index->entry_count, sizeof *index->files, compare_texts);
    for (int i = 0; i < index->entry_count; i++)
        if (index->file_count == 0 ||
            strcmp(index->files[index->file_count - 1], index->files[i]) != 0)
            index->files[index->file_count++] = index->files[i];
}

static int read_map(struct arena *arena, const char *path, const struct json *map,
                    struct pretrained_index *index, struct error *err)
{
    struct json *file;
    index->entries = arena_array(arena, struct pretrained_entry, json_object_count(map));
    json_each_member(file, map) {
        const char *tensor = json_key(file);
        const char *name = json_as_text(file);
        if (!name || !is_plain_name(name))
            return error_set(
                err, ERR_INPUT, "%s: weight_map.%s: must name a file beside it, not %s%s%s", path,
                tensor, name ? "\"" : "", name ? name : "another kind of value", name ? "\"" : "");
        index->entries[index->entry_count++] =
            (struct pretrained_entry){arena_strdup(arena, tensor), arena_strdup(arena, name)};
    }
    qsort(index->entries, (size_t)index->entry_count, sizeof *index->entries, compare_entries);
    list_files(arena, index);
    if (index->file_count > PRETRAINED_MAX_FILES)
        return error_set(err, ERR_INPUT, "%s: %d files: at most %d are supported", path,
                         index->file_count, PRETRAINED_MAX_FILES);
    return 0;
}

int pretrained_index_parse(struct arena *arena, const char *path, const char *text, size_t bytes,
                           struct pretrained_index *ret_index, struct error *err)
{
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root)
        return error_wrap(err, "%s", path);
    const struct json *map = json_get(root, "weight_map");
    struct pretrained_index index = {0};
    int result = json_object_count(map) > 0
                     ? read_map(arena, path, map, &index, err)
                     : error_set(err, ERR_INPUT, "%s: weight_map: missing or empty", path);
    json_free(root);
    if (result == 0)
        *ret_index = index;
    return result;
}

void pretrained_index_print(const struct pretrained_entry *entries, int count, int64_t total_bytes,
                            struct str *out)
{
    struct json *map = json_new_object();
    for (int i = 0; i < count; i++)
        json_set(map, entries[i].tensor, json_new_text(entries[i].file));
    struct json *sizes = json_object_of("total_size", json_new_integer(total_bytes), NULL);
    struct json *root = json_object_of("metadata", sizes, "weight_map", map, NULL);
    char *text = json_print(root, JSON_INDENTED | JSON_SORTED);
    str_add(out, text);
    str_add(out, "\n");
    free(text);
    json_free(root);
}
