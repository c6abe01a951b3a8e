#include "agent/dataset/arrow_folder.h"

#include "agent/dataset/arrow_stream.h"
#include "agent/dataset/offset_search.h"
#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE "state.json"
enum { STATE_MAX_BYTES = 16 << 20, MASK_CHUNK = 256 };

enum { IDS, LABELS, MASK, COLUMNS };
static const struct arrow_request wanted[COLUMNS] = {
    [IDS] = {"input_ids", false}, [LABELS] = {"labels", false}, [MASK] = {"attention_mask", true}};

struct data_file {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    int64_t first; /* rows of the files before it */
};

struct batch {
    const struct arrow_batch *arrow;
    const struct data_file *file;
    int64_t first; /* rows before it, of all files */
};

struct arrow_folder {
    struct arena *arena;
    struct data_file *files; /* [file_count] */
    int file_count;
    struct batch *batches; /* [batch_count], those with rows */
    int64_t batch_count, rows;
};

bool arrow_folder_is(const char *directory)
{
    auto_free char *state = xasprintf("%s/" STATE, directory);
    return access(state, F_OK) == 0;
}

static int decode_state(const char *path, const struct json *root, const char *directory,
                        struct arena *arena, const char ***ret_paths, int *ret_count,
                        struct error *err)
{
    const struct json *files = json_get(root, "_data_files");
    size_t count = json_array_count(files);
    /* datasets' select, shuffle and filter write an index and leave the rows as they are: without
     * it other rows would be read, in another order. */
    if (json_array_count(json_get(root, "_indices_files")) > 0 ||
        json_is_string(json_get(root, "_indices_data_files")))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: the data set was saved with indices beside its rows: call "
                         "flatten_indices() before save_to_disk",
                         path);
    if (!json_is_array(files) || count == 0 || count > TOKENS_MAX_FILES)
        return error_set(err, ERR_INPUT, "%s: names no data files, or more than %d", path,
                         TOKENS_MAX_FILES);
    const char **paths = arena_array(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        const char *file = json_as_text(json_get(json_at(files, i), "filename"));
        /* A name with a slash would lead out of the folder, whoever wrote it. */
        if (!file || strchr(file, '/'))
            return error_set(err, ERR_INPUT,
                             "%s: data file %zu has no name, or one that leads elsewhere", path, i);
        paths[i] = arena_printf(arena, "%s/%s", directory, file);
    }
    *ret_paths = paths;
    *ret_count = (int)count;
    return 0;
}

int arrow_folder_list(const char *directory, struct arena *arena, const char ***ret_paths,
                      int *ret_count, struct error *err)
{
    auto_free char *path = xasprintf("%s/" STATE, directory);
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(path, STATE_MAX_BYTES, &text, &bytes, err) < 0)
        return -1;
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root)
        return error_wrap(err, "%s: damaged", path);
    int result = decode_state(path, root, directory, arena, ret_paths, ret_count, err);
    json_free(root);
    return result;
}

/* ---- rows ---- */

static const struct batch *find_batch(const struct arrow_folder *f, int64_t row)
{
    const struct batch *all = f->batches;
    return &all[offset_search(&all->first, sizeof *all, f->batch_count, row)];
}

static int64_t row_length(const struct arrow_list *list, int64_t row)
{
    return arrow_list_offset(list, row + 1) - arrow_list_offset(list, row);
}

static int64_t length(const void *ctx, int64_t document)
{
    const struct batch *b = find_batch(ctx, document);
    return row_length(&b->arrow->lists[IDS], document - b->first);
}

static const char *locate(const void *ctx, int64_t document, int64_t *ret_number)
{
    const struct batch *b = find_batch(ctx, document);
    *ret_number = document - b->file->first;
    return b->file->path;
}

static void copy(const struct arrow_list *list, int64_t row, int64_t first, int64_t count,
                 int32_t *out)
{
    int64_t at = arrow_list_offset(list, row) + first;
    id_type_copy(list->type, list->values + at * id_type_bytes(list->type), count, out);
}

/* Makes what is masked no target. What is masked must be at the end: before the text it would
 * shift the positions, which nothing here can express. */
static int apply_mask(const struct batch *b, int64_t document, int64_t first, int64_t count,
                      int32_t *labels, struct error *err)
{
    int32_t mask[MASK_CHUNK];
    bool ended = false;
    for (int64_t done = 0; done < count; done += MASK_CHUNK) {
        int64_t chunk = count - done < MASK_CHUNK ? count - done : MASK_CHUNK;
        copy(&b->arrow->lists[MASK], document - b->first, first + done, chunk, mask);
        for (int64_t i = 0; i < chunk; i++) {
            if (mask[i] != 0 && ended)
                return error_set(err, ERR_UNSUPPORTED,
                                 "%s: row %lld: the attention_mask is 0 before it is 1 (at %lld): "
                                 "pad on the right",
                                 b->file->path, (long long)(document - b->file->first),
                                 (long long)(first + done + i));
            ended = mask[i] == 0;
            if (ended)
                labels[done + i] = TOKENS_IGNORED;
        }
    }
    return 0;
}

static int read_row(const void *ctx, int64_t document, int64_t first, int64_t count, int32_t *ids,
                    int32_t *labels, struct error *err)
{
    const struct batch *b = find_batch(ctx, document);
    copy(&b->arrow->lists[IDS], document - b->first, first, count, ids);
    copy(&b->arrow->lists[LABELS], document - b->first, first, count, labels);
    if (!b->arrow->lists[MASK].offsets)
        return 0;
    return apply_mask(b, document, first, count, labels, err);
}

/* ---- opening ---- */

static int check_lengths(const struct data_file *file, const struct arrow_batch *batch,
                         int64_t first, struct error *err)
{
    for (int c = LABELS; c < COLUMNS; c++) {
        if (!batch->lists[c].offsets)
            continue;
        for (int64_t row = 0; row < batch->rows; row++) {
            int64_t ids = row_length(&batch->lists[IDS], row);
            int64_t others = row_length(&batch->lists[c], row);
            if (ids != others)
                return error_set(err, ERR_INPUT, "%s: row %lld has %lld input_ids but %lld %s",
                                 file->path, (long long)(first - file->first + row), (long long)ids,
                                 (long long)others, wanted[c].column);
        }
    }
    return 0;
}

static int add_file(struct arrow_folder *f, struct data_file *file, struct error *err)
{
    struct arrow_stream stream;
    file->first = f->rows;
    if (file_map(file->path, &file->bytes, &file->size, err) < 0 ||
        arrow_stream_parse(f->arena, file->path, file->bytes, file->size, wanted, COLUMNS, &stream,
                           err) < 0)
        return -1;
    f->batches = xrealloc(f->batches, (size_t)(f->batch_count + stream.count) * sizeof *f->batches);
    for (int64_t i = 0; i < stream.count; i++) {
        const struct arrow_batch *batch = &stream.batches[i];
        if (check_lengths(file, batch, f->rows, err) < 0)
            return -1;
        if (batch->rows > 0)
            f->batches[f->batch_count++] = (struct batch){batch, file, f->rows};
        f->rows += batch->rows;
    }
    return 0;
}

static void close_folder(void *ctx)
{
    struct arrow_folder *f = ctx;
    for (int i = 0; i < f->file_count; i++)
        file_unmap(f->files[i].bytes, f->files[i].size);
    free(f->batches);
    arena_close(f->arena);
    free(f);
}

int arrow_folder_open(const char *const *paths, int count, struct id_documents *ret_documents,
                      struct error *err)
{
    struct arrow_folder *f = xcalloc(1, sizeof *f);
    f->arena = arena_open();
    f->files = arena_array(f->arena, struct data_file, count);
    f->file_count = count;
    for (int i = 0; i < count; i++) {
        f->files[i].path = paths[i];
        if (add_file(f, &f->files[i], err) < 0) {
            close_folder(f);
            return -1;
        }
    }
    *ret_documents = (struct id_documents){.ctx = f,
                                           .count = f->rows,
                                           .unit = "row",
                                           .one_window_each = true,
                                           .has_labels = true,
                                           .length = length,
                                           .read = read_row,
                                           .locate = locate,
                                           .close = close_folder};
    return 0;
}
