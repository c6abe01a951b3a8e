#include "agent/checkpoint/inspect.h"

#include "agent/checkpoint/checkpoint_files.h"
#include "agent/checkpoint/checkpoint_index.h"
#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/pretrained_index.h"
#include "agent/checkpoint/tensor_values.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { OTHER_MAX_BYTES = 64 << 20, CHUNK_ELEMENTS = 1 << 16 };

static void add_problem(struct inspection *in, const struct error *err)
{
    lines_add(&in->problems, "%s", err->msg);
}

static bool is_there(struct arena *arena, const char *path, const char *name)
{
    return access(arena_printf(arena, "%s/%s", path, name), F_OK) == 0;
}

static struct inspect_tensor *add_tensor(struct arena *arena, struct inspection *in)
{
    if (in->tensor_count == in->tensor_capacity) {
        in->tensor_capacity = 2 * in->tensor_capacity + 64;
        struct inspect_tensor *more =
            arena_array(arena, struct inspect_tensor, in->tensor_capacity);
        for (int i = 0; i < in->tensor_count; i++)
            more[i] = in->tensors[i];
        in->tensors = more;
    }
    return &in->tensors[in->tensor_count++];
}

/* ---- checkpoints ---- */

static void read_state(struct arena *arena, const char *path, struct inspection *in)
{
    struct checkpoint *checkpoint;
    struct error err;
    if (checkpoint_open(path, &checkpoint, &err) < 0) {
        add_problem(in, &err);
        return;
    }
    in->state = *checkpoint_get_state(checkpoint);
    in->state.data = arena_strdup(arena, in->state.data);
    in->has_state = true;
    checkpoint_close(checkpoint);
}

/* One tensor from its boxes, which stand together. */
static struct inspect_tensor merge(const char *part, const struct index_entry *entries, int count)
{
    struct inspect_tensor t = {.part = part,
                               .name = entries[0].tensor.name,
                               .dtype = entries[0].tensor.dtype,
                               .dims = entries[0].tensor.dims,
                               .pieces = count};
    for (int i = 0; i < count; i++) {
        t.count += entries[i].tensor.count;
        for (int d = 0; d < t.dims && d < entries[i].tensor.dims; d++) {
            int64_t end = entries[i].offset[d] + entries[i].tensor.shape[d];
            t.shape[d] = end > t.shape[d] ? end : t.shape[d];
        }
    }
    return t;
}

static void check_whole(const struct inspect_tensor *t, struct inspection *in)
{
    int64_t count = 1;
    /* The boxes must fill the shape that they span. Overlaps would hide a gap, but saving writes
     * none. */
    for (int d = 0; d < t->dims; d++)
        if (__builtin_mul_overflow(count, t->shape[d], &count))
            count = -1;
    if (t->count != count)
        lines_add(&in->problems, "%s: tensor %s: %" PRId64 " elements are there, not %" PRId64,
                  t->part, t->name, t->count, count);
}

static void read_part(struct arena *arena, const char *path, const struct manifest *manifest,
                      enum checkpoint_part part, struct inspection *in)
{
    struct checkpoint_index index;
    struct error err;
    if (index_build(arena, path, manifest, part, &index, &err) < 0) {
        add_problem(in, &err);
        return;
    }
    for (int first = 0, end; first < index.count; first = end) {
        for (end = first + 1; end < index.count && !strcmp(index.entries[end].tensor.name,
                                                           index.entries[first].tensor.name);)
            end++;
        struct inspect_tensor *t = add_tensor(arena, in);
        *t = merge(checkpoint_part_name(part), index.entries + first, end - first);
        check_whole(t, in);
    }
}

static int has_nonfinite(const struct safetensors *file, const struct safetensors_tensor *t,
                         void *chunk, bool *ret_has, struct error *err)
{
    *ret_has = false;
    for (int64_t done = 0; done < t->count && tensor_has_values(t->dtype) && !*ret_has;
         done += CHUNK_ELEMENTS) {
        struct nonfinite found;
        int64_t count = t->count - done < CHUNK_ELEMENTS ? t->count - done : CHUNK_ELEMENTS;
        if (safetensors_read(file, t, done, count, chunk, err) < 0)
            return -1;
        *ret_has = nonfinite_find(t->dtype, chunk, count, &found);
    }
    return 0;
}

/* What no run loads: once for a file, as often all of it has it. */
static int check_values(const char *path, const struct manifest_file *listed,
                        const struct safetensors *file, struct error *err)
{
    const struct safetensors_header *header = safetensors_header(file);
    auto_free float *chunk = xmalloc(CHUNK_ELEMENTS * sizeof *chunk);
    const char *first = NULL;
    int count = 0;
    for (int i = 0; i < header->tensor_count; i++) {
        bool has;
        if (has_nonfinite(file, &header->tensors[i], chunk, &has, err) < 0)
            return -1;
        first = has && !first ? header->tensors[i].name : first;
        count += has;
    }
    if (count == 0)
        return 0;
    return error_set(err, ERR_INPUT, "%s/%s: NaN or infinity in %d of %d tensors, the first is %s",
                     path, listed->path, count, header->tensor_count, first);
}

static int verify_tensors(const char *path, const struct manifest_file *listed, struct error *err)
{
    struct safetensors *file;
    if (index_open_file(path, listed, &file, err) < 0)
        return -1;
    int result = index_verify_file(path, listed, file, err);
    if (result == 0)
        result = check_values(path, listed, file, err);
    safetensors_close(file);
    return result;
}

static int verify_other(const char *path, const struct manifest_file *listed, struct error *err)
{
    auto_free char *file_path = xasprintf("%s/%s", path, listed->path);
    auto_free char *bytes = NULL;
    size_t count;
    if (file_read(file_path, OTHER_MAX_BYTES, &bytes, &count, err) < 0)
        return -1;
    if (XXH64(bytes, count, 0) != listed->xxh64)
        return error_set(err, ERR_INPUT, "%s: damaged: it is not what was saved", file_path);
    return 0;
}

static bool has_tensors(const struct manifest_file *listed)
{
    static const char end[] = ".safetensors";
    size_t length = strlen(listed->path), tail = sizeof end - 1;
    return length > tail && !strcmp(listed->path + length - tail, end);
}

static int verify(const char *path, const struct manifest_file *listed, struct error *err)
{
    return has_tensors(listed) ? verify_tensors(path, listed, err)
                               : verify_other(path, listed, err);
}

/* Whether a file is what the manifest says. */
static void check_file(const char *path, const struct manifest_file *listed, bool verified,
                       struct inspection *in)
{
    struct stat info;
    struct error err;
    auto_free char *file_path = xasprintf("%s/%s", path, listed->path);
    if (stat(file_path, &info) < 0)
        lines_add(&in->problems, "%s: %s", file_path, strerror(errno));
    else if (info.st_size != listed->bytes)
        lines_add(&in->problems, "%s: %" PRId64 " bytes, not %" PRId64, file_path,
                  (int64_t)info.st_size, listed->bytes);
    else if (!verified || !strcmp(listed->path, CHECKPOINT_STATE)) /* read_state() looks at it */
        return;
    else if (verify(path, listed, &err) < 0)
        add_problem(in, &err);
}

static int read_checkpoint(struct arena *arena, const char *path, bool verified,
                           struct inspection *in, struct error *err)
{
    struct manifest manifest;
    if (checkpoint_read_manifest(arena, path, &manifest, err) < 0)
        return -1;
    in->kind = INSPECT_CHECKPOINT;
    in->step = manifest.step;
    in->verified = verified;
    in->files = arena_array(arena, struct inspect_file, manifest.file_count);
    for (int i = 0; i < manifest.file_count; i++) {
        const struct manifest_file *f = &manifest.files[i];
        in->files[in->file_count++] = (struct inspect_file){f->path, f->bytes};
        check_file(path, f, verified, in);
    }
    read_state(arena, path, in);
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        read_part(arena, path, &manifest, (enum checkpoint_part)part, in);
    return 0;
}

/* Looks at one of a directory's checkpoints: what is wrong with it is a problem of
 * the directory. */
static void check_found(struct arena *arena, const char *path, bool verified, struct inspection *in)
{
    struct inspection one = {0};
    struct error err;
    lines_init(&one.problems, arena);
    lines_init(&one.passed_over, arena);
    if (read_checkpoint(arena, path, verified, &one, &err) < 0)
        add_problem(in, &err);
    for (size_t i = 0; i < one.problems.count; i++)
        lines_add(&in->problems, "%s", one.problems.items[i]);
}

/* The complete checkpoints of a directory, the newest first; ERR_NOT_FOUND if there is none. */
static int read_directory(struct arena *arena, const char *path, bool verified,
                          struct inspection *in, struct error *err)
{
    struct checkpoint_listed *found;
    struct checkpoint_skipped skipped;
    int count;
    lines_init(&skipped.paths, arena);
    lines_init(&skipped.reasons, arena);
    if (checkpoint_list(arena, path, &skipped, &found, &count, err) < 0)
        return -1;
    if (count == 0)
        return error_set(err, ERR_NOT_FOUND, "%s: there is no complete checkpoint in it", path);
    in->passed_over = skipped.reasons;
    in->kind = INSPECT_DIRECTORY;
    in->verified = verified;
    in->found = arena_array(arena, struct checkpoint_listed, count);
    for (int i = count - 1; i >= 0; i--) {
        in->found[in->found_count++] = found[i];
        check_found(arena, found[i].path, verified, in);
    }
    return 0;
}

/* ---- safetensors files ---- */

static int compare_tensors(const void *a, const void *b)
{
    return strcmp(((const struct inspect_tensor *)a)->name,
                  ((const struct inspect_tensor *)b)->name);
}

/* Adds a file and its tensors. */
static int add_file(struct arena *arena, const char *path, const char *name, struct inspection *in,
                    struct error *err)
{
    struct stat info;
    struct safetensors *file;
    if (safetensors_open(path, &file, err) < 0)
        return -1;
    const struct safetensors_header *header = safetensors_header(file);
    for (int i = 0; i < header->tensor_count; i++) {
        const struct safetensors_tensor *from = &header->tensors[i];
        struct inspect_tensor *t = add_tensor(arena, in);
        *t = (struct inspect_tensor){.part = "",
                                     .name = arena_strdup(arena, from->name),
                                     .dtype = from->dtype,
                                     .dims = from->dims,
                                     .count = from->count,
                                     .pieces = 1};
        memcpy(t->shape, from->shape, sizeof t->shape);
    }
    safetensors_close(file);
    in->files[in->file_count++] =
        (struct inspect_file){name, stat(path, &info) == 0 ? (int64_t)info.st_size : 0};
    return 0;
}

static int read_single(struct arena *arena, const char *path, struct inspection *in,
                       struct error *err)
{
    in->kind = INSPECT_FILE;
    in->files = arena_array(arena, struct inspect_file, 1);
    return add_file(arena, path, "", in, err);
}

/* Every tensor of the index is in some file. */
static void check_index(const struct pretrained_index *index, struct inspection *in)
{
    for (int i = 0; i < index->entry_count; i++) {
        const struct inspect_tensor key = {.name = index->entries[i].tensor};
        if (in->tensor_count == 0 ||
            !bsearch(&key, in->tensors, (size_t)in->tensor_count, sizeof key, compare_tensors))
            lines_add(&in->problems, "tensor %s is not in %s, though the index says so", key.name,
                      index->entries[i].file);
    }
}

static int read_pretrained(struct arena *arena, const char *path, struct inspection *in,
                           struct error *err)
{
    static const char *const single[] = {PRETRAINED_FILE};
    struct pretrained_index index = {.files = (const char **)single, .file_count = 1};
    const char *index_path = arena_printf(arena, "%s/%s", path, PRETRAINED_INDEX);
    in->kind = INSPECT_PRETRAINED;
    if (is_there(arena, path, PRETRAINED_INDEX)) {
        auto_free char *text = NULL;
        size_t bytes;
        if (file_read(index_path, PRETRAINED_INDEX_MAX_BYTES, &text, &bytes, err) < 0 ||
            pretrained_index_parse(arena, index_path, text, bytes, &index, err) < 0)
            return -1;
    }
    in->files = arena_array(arena, struct inspect_file, index.file_count);
    for (int i = 0; i < index.file_count; i++) {
        struct error file_err;
        const char *file_path = arena_printf(arena, "%s/%s", path, index.files[i]);
        if (add_file(arena, file_path, index.files[i], in, &file_err) < 0)
            add_problem(in, &file_err);
    }
    if (in->tensor_count > 0)
        qsort(in->tensors, (size_t)in->tensor_count, sizeof *in->tensors, compare_tensors);
    check_index(&index, in);
    return 0;
}

/* ---- all kinds ---- */

int inspect_read(struct arena *arena, const char *path, bool verified,
                 struct inspection *ret_inspection, struct error *err)
{
    struct stat info;
    *ret_inspection = (struct inspection){0};
    lines_init(&ret_inspection->problems, arena);
    lines_init(&ret_inspection->passed_over, arena);
    if (stat(path, &info) < 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISDIR(info.st_mode))
        return read_single(arena, path, ret_inspection, err);
    if (is_there(arena, path, CHECKPOINT_MANIFEST))
        return read_checkpoint(arena, path, verified, ret_inspection, err);
    if (is_there(arena, path, PRETRAINED_INDEX) || is_there(arena, path, PRETRAINED_FILE))
        return read_pretrained(arena, path, ret_inspection, err);
    if (checkpoint_is_own(path) && is_there(arena, path, checkpoint_part_name(CHECKPOINT_MODEL)))
        return error_set(err, ERR_INPUT, "%s: a save that did not finish: there is no %s in it",
                         path, CHECKPOINT_MANIFEST);
    if (read_directory(arena, path, verified, ret_inspection, err) < 0)
        return error_set(err, ERR_INPUT,
                         "%s: no checkpoint, no directory of checkpoints and no Hugging Face model",
                         path);
    return 0;
}
