/* A Hugging Face directory: built beside its target and put there by one rename. */
#include "agent/checkpoint/export_internal.h"

#include "agent/checkpoint/pretrained_index.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Which tensors go to which file: file f has first[f] .. first[f + 1] - 1. */
struct plan {
    int *first;
    int file_count;
    int64_t total_bytes;
    char temp[PATH_MAX]; /* the directory while it is built */
};

static int64_t tensor_bytes(const struct export_model *model, int i)
{
    int64_t bytes = (int64_t)dtype_bytes(model->dtype);
    for (int d = 0; d < model->tensors[i].dims; d++)
        bytes *= model->tensors[i].shape[d];
    return bytes;
}

/* In the order of the tensors, as transformers fills its files. */
static void make_plan(struct arena *arena, const struct export_directory *what, struct plan *plan)
{
    int count = what->model.count;
    int64_t filled = 0;
    *plan = (struct plan){.first = arena_array(arena, int, count + 1), .file_count = 1};
    for (int i = 0; i < count; i++) {
        int64_t bytes = tensor_bytes(&what->model, i);
        if (what->max_file_bytes && filled > 0 && filled + bytes > what->max_file_bytes) {
            plan->first[plan->file_count++] = i;
            filled = 0;
        }
        filled += bytes;
        plan->total_bytes += bytes;
    }
    plan->first[plan->file_count] = count;
}

static const char *file_name(struct arena *arena, const struct plan *plan, int file)
{
    if (plan->file_count == 1)
        return PRETRAINED_FILE;
    return arena_printf(arena, "model-%05d-of-%05d.safetensors", file + 1, plan->file_count);
}

/* ---- the target ---- */

/* Whether an export writes files of this name. */
static bool is_ours(const struct export_directory *what, const char *name)
{
    int number, count, end = 0;
    if (strcmp(name, PRETRAINED_FILE) == 0 || strcmp(name, PRETRAINED_INDEX) == 0)
        return true;
    if (sscanf(name, "model-%5d-of-%5d.safetensors%n", &number, &count, &end) == 2 && end > 0 &&
        name[end] == '\0')
        return true;
    for (int i = 0; i < what->text_count; i++)
        if (strcmp(name, what->texts[i].name) == 0)
            return true;
    return false;
}

/* A volume's root has its name from elsewhere: nothing else can take it. */
static bool is_mount(const char *path)
{
    struct statx st;
    return statx(AT_FDCWD, path, 0, 0, &st) == 0 &&
           (st.stx_attributes & st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

/* What is replaced must be an export. */
static int check_target(const struct export_directory *what, struct error *err)
{
    const char *path = what->model.path;
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ERR_EXISTS, "%s is a file; name a directory", path);
    if (is_mount(path))
        return error_set(err, ERR_EXISTS,
                         "%s is where a volume is mounted: an export, which comes whole or not at "
                         "all, can only be in it; name %s/model",
                         path, path);
    DIR *dir = opendir(path);
    if (!dir)
        return error_errno(err, errno, "%s", path);
    int result = 0;
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !is_ours(what, entry->d_name))
            result = error_set(err, ERR_EXISTS,
                               "%s holds %s, which an export would not write: name a directory of "
                               "its own",
                               path, entry->d_name);
    closedir(dir);
    return result;
}

/* Directories that killed processes left of this one. */
static int remove_left_over(const struct export_model *model, const char *parent, const char *base,
                            struct error *err)
{
    struct dirent **entries;
    int count = scandir(parent, &entries, NULL, NULL);
    if (count < 0)
        return error_errno(err, errno, "%s", parent);
    int result = 0;
    for (int i = 0; i < count; i++) {
        auto_free char *path = xasprintf("%s/%s", parent, entries[i]->d_name);
        if (result == 0 && durable_is_temp(entries[i]->d_name, base))
            result = durable_remove_tree(model->files, path, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

/* "out/" is "out", since a temporary name with the slash would lie in the directory it is to
 * replace; and a link is what it names, if that is there: the directory is replaced,
 * not the link. */
static const char *resolve_target(struct arena *arena, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    const char *plain = arena_strndup(arena, path, length);
    struct stat st;
    if (lstat(plain, &st) < 0 || !S_ISLNK(st.st_mode))
        return plain;
    auto_free char *target = realpath(plain, NULL);
    return target ? arena_strndup(arena, target, strlen(target)) : plain;
}

int export_try_directory(const struct export_directory *what, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct export_directory plain = *what;
    plain.model.path = resolve_target(arena, what->model.path);
    char *copy = arena_strndup(arena, plain.model.path, strlen(plain.model.path));
    if (check_target(&plain, err) < 0)
        return -1;
    return durable_try_dir(what->model.files, dirname(copy), err); /* which writes into it */
}

static int open_temp(const struct export_directory *what, struct plan *plan, struct error *err)
{
    const struct export_model *model = &what->model;
    auto_free char *copy = xstrdup(model->path); /* dirname and basename write into them */
    auto_free char *copy2 = xstrdup(model->path);
    auto_free char *temp = durable_temp_name(model->path);
    const char *parent = dirname(copy);
    if (durable_make_dirs(model->files, parent, err) < 0 || check_target(what, err) < 0 ||
        remove_left_over(model, parent, basename(copy2), err) < 0 ||
        durable_make_dir(model->files, temp, err) < 0)
        return -1;
    snprintf(plan->temp, sizeof plan->temp, "%s", temp);
    return 0;
}

/* ---- writing ---- */

static int write_text(const struct export_directory *what, const struct plan *plan,
                      const char *name, const void *data, size_t bytes, struct error *err)
{
    auto_free char *path = xasprintf("%s/%s", plan->temp, name);
    struct durable_result written;
    return durable_write_file(what->model.files, path, data, bytes, &written, err);
}

static int write_index(struct arena *arena, const struct export_directory *what,
                       const struct plan *plan, struct error *err)
{
    struct pretrained_entry *entries =
        arena_array(arena, struct pretrained_entry, what->model.count);
    for (int f = 0; f < plan->file_count; f++)
        for (int i = plan->first[f]; i < plan->first[f + 1]; i++)
            entries[i] =
                (struct pretrained_entry){what->model.tensors[i].name, file_name(arena, plan, f)};
    auto_str struct str text;
    str_init(&text, PRETRAINED_INDEX_MAX_BYTES);
    pretrained_index_print(entries, what->model.count, plan->total_bytes, &text);
    return write_text(what, plan, PRETRAINED_INDEX, str_text(&text), text.length, err);
}

/* One file of weights. Collective. */
static int write_weights(struct arena *arena, const struct export_directory *what,
                         const struct plan *plan, int file, struct export_writer *w,
                         struct error *err)
{
    if (what->model.comm->rank == 0 && w->result == 0) {
        auto_free char *path = xasprintf("%s/%s", plan->temp, file_name(arena, plan, file));
        w->result = durable_create(what->model.files, path, &w->file, &w->err);
    }
    int first = plan->first[file];
    int gathered = export_write_tensors(&what->model, first, plan->first[file + 1] - first, w, err);
    struct durable_result written;
    if (w->file && (gathered < 0 || w->result < 0))
        durable_abandon(take(w->file));
    else if (w->file)
        w->result = durable_finish(take(w->file), &written, &w->err);
    return gathered;
}

/* The small files, and the rename. */
static int publish(struct arena *arena, const struct export_directory *what,
                   const struct plan *plan, struct error *err)
{
    const struct file_ops *files = what->model.files;
    if (plan->file_count > 1 && write_index(arena, what, plan, err) < 0)
        return -1;
    for (int i = 0; i < what->text_count; i++)
        if (write_text(what, plan, what->texts[i].name, what->texts[i].data, what->texts[i].bytes,
                       err) < 0)
            return -1;
    /* Others may watch the target: they see the old directory or the new one, and never files of
     * both. */
    if (durable_sync_dir(files, plan->temp, err) < 0 ||
        durable_rename(files, plan->temp, what->model.path, err) < 0)
        return -1;
    return durable_remove_tree(files, plan->temp, err); /* what was replaced */
}

static int build_directory(struct arena *arena, const struct export_directory *what,
                           struct error *err)
{
    struct export_writer writer = {0};
    struct plan plan;
    bool is_writer = what->model.comm->rank == 0;
    make_plan(arena, what, &plan);
    if (is_writer)
        writer.result = open_temp(what, &plan, &writer.err);
    int gathered = 0;
    for (int f = 0; f < plan.file_count && gathered == 0; f++)
        gathered = write_weights(arena, what, &plan, f, &writer, err);
    if (is_writer && gathered == 0 && writer.result == 0)
        writer.result = publish(arena, what, &plan, &writer.err);
    if (plan.temp[0] && (gathered < 0 || writer.result < 0)) {
        struct error ignored;
        durable_remove_tree(what->model.files, plan.temp, &ignored);
    }
    return gathered < 0 ? -1 : export_agree(&what->model, &writer, err);
}

int export_directory(const struct export_directory *what, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct export_directory plain = *what;
    plain.model.path = resolve_target(arena, what->model.path);
    return build_directory(arena, &plain, err);
}
