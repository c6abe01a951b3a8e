#include "agent/export.h"

#include "agent/agree.h"
#include "agent/safetensors.h"
#include "base/mem.h"

#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

/* The file while it is written, on rank 0. Once something failed, the rest does nothing: rank 0
 * must go on gathering because the others do. On other ranks `file` is NULL from the start. */
struct writer {
    const struct file_ops *files;
    const char *path, *temp; /* temp: its name until it is whole */
    struct durable_file *file;
    int result;
    struct error err;
};

static int check_target(const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return error_set(err, ERR_EXISTS,
                         "%s is a directory; name a file, such as %s/model.safetensors", path,
                         path);
    return 0;
}

int export_try(const struct file_ops *files, const char *path, struct error *err)
{
    auto_free char *copy = xstrdup(path); /* dirname writes into it */
    return check_target(path, err) < 0 ? -1 : durable_try_dir(files, dirname(copy), err);
}

static void writer_open(struct writer *w)
{
    auto_free char *copy = xstrdup(w->path); /* dirname writes into it */
    w->result = durable_make_dirs(w->files, dirname(copy), &w->err);
    if (w->result == 0)
        w->result = check_target(w->path, &w->err);
    if (w->result == 0)
        w->result = durable_remove_temp_files(w->files, w->path, &w->err);
    if (w->result == 0)
        w->result = durable_create(w->files, w->temp, &w->file, &w->err);
}

static void writer_add(struct writer *w, const void *data, int64_t bytes)
{
    if (w->file && w->result == 0)
        w->result = durable_write(w->file, data, (size_t)bytes, &w->err);
}

static void writer_close(struct writer *w)
{
    if (!w->file)
        return;
    struct durable_result written;
    if (w->result < 0) {
        durable_abandon(take(w->file));
        return;
    }
    w->result = durable_finish(take(w->file), &written, &w->err);
    if (w->result < 0)
        return;
    w->result = durable_rename(w->files, w->temp, w->path, &w->err);
    if (w->result < 0)
        w->files->remove(w->files->ctx, w->temp);
}

/* All tensors, in the file's order. */
static int gather_all(const struct export_model *what, const struct safetensors_tensor *tensors,
                      const struct safetensors_layout *layout, struct writer *writer,
                      struct error *err)
{
    int64_t most = 0;
    for (int i = 0; i < what->count; i++)
        most = tensors[i].count > most ? tensors[i].count : most;
    auto_free float *values = xcalloc((size_t)most, sizeof *values);
    for (int k = 0; k < layout->count; k++) {
        const struct safetensors_tensor *t = layout->order[k];
        if (what->gather(what->ctx, (int)(t - tensors), values, err) < 0)
            return -1;
        writer_add(writer, values, t->count * (int64_t)sizeof *values);
    }
    return 0;
}

static struct safetensors_tensor *describe(struct arena *arena, const struct export_model *what)
{
    struct safetensors_tensor *tensors = arena_array(arena, struct safetensors_tensor, what->count);
    for (int i = 0; i < what->count; i++) {
        tensors[i] = (struct safetensors_tensor){
            .name = what->tensors[i].name, .dtype = SAFETENSORS_F32, .dims = what->tensors[i].dims};
        memcpy(tensors[i].shape, what->tensors[i].shape, sizeof what->tensors[i].shape);
    }
    return tensors;
}

int export_model(const struct export_model *what, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct safetensors_tensor *tensors = describe(arena, what);
    struct safetensors_layout layout;
    safetensors_lay_out(arena, tensors, what->count, NULL, 0, &layout);
    auto_free char *temp = durable_temp_name(what->path);
    struct writer writer = {.files = what->files, .path = what->path, .temp = temp};
    if (what->comm->rank == 0)
        writer_open(&writer);
    writer_add(&writer, layout.header, layout.header_bytes);
    int gathered = gather_all(what, tensors, &layout, &writer, err);
    if (gathered < 0)
        writer.result = -1;
    writer_close(&writer);
    if (gathered < 0)
        return -1;
    struct outcome outcome;
    outcome_set(&outcome, writer.result, &writer.err);
    if (agree_broadcast(what->comm, what->stream, &outcome, sizeof outcome, err) < 0)
        return -1;
    return outcome_get(&outcome, 0, err);
}
