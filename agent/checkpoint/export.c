#include "agent/checkpoint/export_internal.h"

#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/safetensors.h"
#include "agent/checkpoint/tensor_values.h"
#include "agent/comm/agree.h"
#include "base/file.h"
#include "base/mem.h"

#include <libgen.h>
#include <string.h>

static int check_target(const char *path, struct error *err)
{
    if (file_is_directory(path))
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

/* ---- tensors ---- */

static void write_bytes(struct export_writer *w, const void *data, int64_t bytes)
{
    if (w->file && w->result == 0)
        w->result = durable_write(w->file, data, (size_t)bytes, &w->err);
}

/* Rounded where they are. */
static void write_values(struct export_writer *w, const struct export_model *what,
                         const struct safetensors_tensor *t, float *values)
{
    struct nonfinite found;
    if (!w->file)
        return;
    dtype_narrow(what->dtype, values, t->count);
    if (w->result == 0 && !what->allow_nonfinite &&
        nonfinite_find(t->dtype, values, t->count, &found))
        w->result = nonfinite_error(ERR_DIVERGED, t->name, t->dims, t->shape, &found, &w->err);
    write_bytes(w, values, t->count * (int64_t)dtype_bytes(what->dtype));
}

static struct safetensors_tensor *describe(struct arena *arena, const struct export_model *what,
                                           int first, int count)
{
    struct safetensors_tensor *tensors = arena_array(arena, struct safetensors_tensor, count);
    for (int i = 0; i < count; i++) {
        const struct export_tensor *from = &what->tensors[first + i];
        tensors[i] = (struct safetensors_tensor){
            .name = from->name, .dtype = tensor_dtype_of(what->dtype), .dims = from->dims};
        memcpy(tensors[i].shape, from->shape, sizeof from->shape);
    }
    return tensors;
}

int export_write_tensors(const struct export_model *what, int first, int count,
                         struct export_writer *writer, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct safetensors_tensor *tensors = describe(arena, what, first, count);
    struct safetensors_layout layout;
    safetensors_lay_out(arena, tensors, count, NULL, 0, &layout);
    write_bytes(writer, layout.header, layout.header_bytes);
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = tensors[i].count > most ? tensors[i].count : most;
    auto_free float *values = xcalloc((size_t)most, sizeof *values);
    for (int k = 0; k < layout.count; k++) {
        /* All ranks gather in the file's order, also those that write nothing: gather is
         * collective. */
        const struct safetensors_tensor *t = layout.order[k];
        if (what->gather(what->ctx, first + (int)(t - tensors), values, err) < 0)
            return -1;
        write_values(writer, what, t, values);
    }
    return 0;
}

int export_agree(const struct export_model *what, const struct export_writer *writer,
                 struct error *err)
{
    struct outcome outcome;
    if (what->comm->size == 1) { /* a tool: its messages have no ranks */
        *err = writer->err;
        err->shared = true;
        return writer->result;
    }
    outcome_set(&outcome, writer->result, &writer->err);
    if (agree_broadcast(what->comm, what->stream, &outcome, sizeof outcome, err) < 0)
        return -1;
    return outcome_get(&outcome, 0, err);
}

/* ---- one file ---- */

/* temp: the file's name until it is whole. */
static void open_file(const struct export_model *what, const char *temp, struct export_writer *w)
{
    auto_free char *copy = xstrdup(what->path); /* dirname writes into it */
    w->result = durable_make_dirs(what->files, dirname(copy), &w->err);
    if (w->result == 0)
        w->result = check_target(what->path, &w->err);
    if (w->result == 0)
        w->result = durable_remove_temp_files(what->files, what->path, &w->err);
    if (w->result == 0)
        w->result = durable_create(what->files, temp, &w->file, &w->err);
}

static void close_file(const struct export_model *what, const char *temp, struct export_writer *w)
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
    w->result = durable_rename(what->files, temp, what->path, &w->err);
    if (w->result < 0)
        what->files->remove(what->files->ctx, temp);
}

int export_model(const struct export_model *what, struct error *err)
{
    auto_free char *temp = durable_temp_name(what->path);
    struct export_writer writer = {0};
    if (what->comm->rank == 0)
        open_file(what, temp, &writer);
    /* A rank 0 that cannot write goes on gathering: the others wait in the collectives, and hear of
     * it by export_agree. */
    int gathered = export_write_tensors(what, 0, what->count, &writer, err);
    if (gathered < 0)
        writer.result = -1;
    close_file(what, temp, &writer);
    return gathered < 0 ? -1 : export_agree(what, &writer, err);
}
