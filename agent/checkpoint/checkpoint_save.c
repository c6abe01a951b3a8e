/* Saving goes through three meetings of the ranks, so that all of them report the same result:
 *
 *   rank 0 makes a new directory          -> broadcast: its name, or why not
 *   every rank looks through what it has,
 *   writes and syncs its files            -> all_gather: their sizes and checksums, or why not
 *   rank 0 writes the manifest and commits -> broadcast: done, or why not */
#include "agent/checkpoint/checkpoint.h"

#include "agent/checkpoint/checkpoint_files.h"
#include "agent/checkpoint/checkpoint_manifest.h"
#include "agent/checkpoint/nonfinite.h"
#include "agent/checkpoint/safetensors.h"
#include "agent/checkpoint/tensor_values.h"
#include "agent/comm/agree.h"
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { TEMP_ATTEMPTS = 8 };

/* What one rank wrote of one part. */
struct part_report {
    int64_t file_count;
    struct durable_result files[BOX_MAX_PER_RANGE];
    uint64_t heads[BOX_MAX_PER_RANGE]; /* xxh64 of each file's header */
};

/* What each rank sends all others after writing. */
struct rank_report {
    struct outcome outcome;
    struct part_report parts[CHECKPOINT_PARTS];
};

/* What rank 0 sends the others. */
struct notice {
    struct outcome outcome;
    char temp[PATH_MAX]; /* path of the directory to write to */
};

/* Rank 0's notice to everyone; its failure becomes everyone's. */
static int share_notice(const struct checkpoint_save *save, struct notice *notice,
                        struct error *err)
{
    if (agree_broadcast(save->comm, save->stream, notice, sizeof *notice, err) < 0)
        return -1;
    return outcome_get(&notice->outcome, 0, err);
}

/* ---- every rank: its files ---- */

/* A range's k-th box, and where its data is. */
struct saved_box {
    const struct tensor_range *range;
    struct box box;
    const char *data;
};

/* The k-th box of every range that has so many. Returns how many; *ret_most is the largest number
 * of boxes of any range. */
static int collect_boxes(const struct tensor_ranges *ranges, int k, struct saved_box *saved,
                         int *ret_most)
{
    int count = 0;
    *ret_most = 0;
    for (int i = 0; i < ranges->count; i++) {
        const struct tensor_range *p = &ranges->items[i];
        struct box boxes[BOX_MAX_PER_RANGE];
        int n = box_split(p->dims, p->shape, p->first, p->count, boxes);
        *ret_most = n > *ret_most ? n : *ret_most;
        if (k >= n)
            continue;
        const char *data = p->data;
        /* A range's elements are contiguous in memory, and its boxes follow each other in them. */
        for (int before = 0; before < k; before++)
            data += (size_t)boxes[before].count * dtype_bytes(p->dtype);
        saved[count++] = (struct saved_box){p, boxes[k], data};
    }
    return count;
}

/* The text for CHECKPOINT_METADATA_OFFSETS. In the arena. */
static const char *offsets_metadata(struct arena *arena, const struct saved_box *saved, int count)
{
    struct json *root = json_new_object();
    for (int i = 0; i < count; i++) {
        struct json *offsets = json_new_array();
        for (int d = 0; d < saved[i].range->dims; d++)
            json_append(offsets, json_new_integer(saved[i].box.offset[d]));
        json_set(root, saved[i].range->name,
                 json_object_of(CHECKPOINT_SAVED_OFFSETS, offsets, NULL));
    }
    char *text = json_print(root, JSON_COMPACT);
    const char *note = arena_strdup(arena, text);
    free(text);
    json_free(root);
    return note;
}

/* One safetensors file of these boxes. */
static int write_boxes(const struct file_ops *files, const char *path,
                       const struct saved_box *saved, int count, struct durable_result *ret_result,
                       uint64_t *ret_head, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct safetensors_tensor *tensors = arena_array(arena, struct safetensors_tensor, count);
    for (int i = 0; i < count; i++) {
        const struct saved_box *s = &saved[i];
        tensors[i] = (struct safetensors_tensor){.name = s->range->name,
                                                 .dtype = tensor_dtype_of(s->range->dtype),
                                                 .dims = s->range->dims};
        memcpy(tensors[i].shape, s->box.extent, sizeof s->box.extent);
    }
    const struct safetensors_metadata metadata[] = {
        {CHECKPOINT_METADATA_VERSION, "1.0"},
        {CHECKPOINT_METADATA_OFFSETS, offsets_metadata(arena, saved, count)},
    };
    struct safetensors_layout layout;
    safetensors_lay_out(arena, tensors, count, metadata, array_length(metadata), &layout);
    struct durable_file *file;
    if (durable_create(files, path, &file, err) < 0)
        return -1;
    int result = durable_write(file, layout.header, (size_t)layout.header_bytes, err);
    for (int i = 0; i < count && result == 0; i++) {
        const struct saved_box *s = &saved[layout.order[i] - tensors];
        result =
            durable_write(file, s->data, (size_t)s->box.count * dtype_bytes(s->range->dtype), err);
    }
    if (result < 0) {
        durable_abandon(file);
        return -1;
    }
    *ret_head = XXH64(layout.header, (size_t)layout.header_bytes, 0);
    return durable_finish(file, ret_result, err);
}

/* Below the checkpoint's directory, as torch.distributed.checkpoint names them. Caller frees. */
static char *file_path(enum checkpoint_part part, int rank, int file, int files)
{
    return xasprintf("%s/shard-%05d-model-%05d-of-%05d.safetensors", checkpoint_part_name(part),
                     rank + 1, file + 1, files);
}

static int write_part(const struct checkpoint_save *save, const char *temp,
                      enum checkpoint_part part, struct part_report *report, struct error *err)
{
    const struct tensor_ranges *ranges = &save->parts[part];
    auto_free struct saved_box *saved = xcalloc((size_t)ranges->count, sizeof *saved);
    int files = 0;
    collect_boxes(ranges, 0, saved, &files);
    report->file_count = files;
    for (int k = 0; k < files; k++) {
        int most, count = collect_boxes(ranges, k, saved, &most);
        auto_free char *below = file_path(part, save->comm->rank, k, files);
        auto_free char *path = xasprintf("%s/%s", temp, below);
        if (write_boxes(save->files, path, saved, count, &report->files[k], &report->heads[k],
                        err) < 0)
            return -1;
    }
    return 0;
}

/* Before anything is written: a refused save costs one pass over memory, and no disk. */
static int check_parts(const struct checkpoint_save *save, struct error *err)
{
    if (save->allow_nonfinite)
        return 0;
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        if (nonfinite_check(&save->parts[part], err) < 0)
            return -1;
    return 0;
}

static int write_parts(const struct checkpoint_save *save, const char *temp,
                       struct rank_report *report, struct error *err)
{
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        if (write_part(save, temp, part, &report->parts[part], err) < 0)
            return access(temp, F_OK) < 0
                       ? error_wrap(err,
                                    "somebody removed %s, maybe another run that saves there "
                                    "(give each a checkpoint.dir of its own), or this host's "
                                    "checkpoint.dir is no longer the one of rank 0",
                                    temp)
                       : -1;
    return 0;
}

/* ---- rank 0: the directory and the manifest ---- */

/* A directory of a new name, locked where the file system can, else *ret_lock is -1. Another save
 * may take it for left over before it is locked: then there is one more name. */
static int make_locked(const struct checkpoint_save *save, struct notice *notice, int *ret_lock,
                       struct error *err)
{
    for (int attempt = 0; attempt < TEMP_ATTEMPTS; attempt++) {
        auto_free char *name = durable_temp_name(save->name);
        int length = snprintf(notice->temp, sizeof notice->temp, "%s/%s", save->dir, name);
        if (length >= (int)sizeof notice->temp)
            return error_set(err, ERR_CONFIG, "checkpoint directory %s: the path is too long",
                             save->dir);
        if (durable_make_dir(save->files, notice->temp, err) < 0)
            return -1;
        *ret_lock = checkpoint_lock_temp(notice->temp);
        /* Between mkdir and flock another run's cleaning may lock the directory and remove it: both
         * are looked for, and the next name is tried. */
        bool is_taken = *ret_lock < 0 && errno == EWOULDBLOCK;
        if (!is_taken && access(notice->temp, F_OK) == 0)
            return 0;
        if (*ret_lock >= 0)
            close(*ret_lock);
        *ret_lock = -1;
    }
    return error_set(err, ERR_EXISTS,
                     "other runs remove what is saved in %s: give each a checkpoint.dir of its own",
                     save->dir);
}

static int make_temp(const struct checkpoint_save *save, struct notice *notice, int *ret_lock,
                     struct error *err)
{
    auto_free char *target = xasprintf("%s/%s", save->dir, save->name);
    if (durable_make_dirs(save->files, save->dir, err) < 0 ||
        checkpoint_clear_path(save->files, target, err) < 0 ||
        checkpoint_remove_temps(save->files, save->dir, err) < 0 ||
        make_locked(save, notice, ret_lock, err) < 0)
        return -1;
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        auto_free char *path = xasprintf("%s/%s", notice->temp, checkpoint_part_name(part));
        if (durable_make_dir(save->files, path, err) < 0)
            return -1;
    }
    return 0;
}

static void list_files(struct arena *arena, const struct rank_report *reports, int ranks,
                       struct manifest *manifest)
{
    size_t most = 1 + CHECKPOINT_TEXTS + (size_t)ranks * CHECKPOINT_PARTS * BOX_MAX_PER_RANGE;
    manifest->files = arena_array(arena, struct manifest_file, most);
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        for (int rank = 0; rank < ranks; rank++) {
            const struct part_report *r = &reports[rank].parts[part];
            for (int k = 0; k < r->file_count; k++) {
                auto_free char *path = file_path(part, rank, k, (int)r->file_count);
                manifest->files[manifest->file_count++] = (struct manifest_file){
                    arena_strdup(arena, path), r->files[k].bytes, r->files[k].xxh64, r->heads[k]};
            }
        }
    }
}

static int sync_dirs(const struct file_ops *files, const char *temp, struct error *err)
{
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        auto_free char *path = xasprintf("%s/%s", temp, checkpoint_part_name(part));
        if (durable_sync_dir(files, path, err) < 0)
            return -1;
    }
    return durable_sync_dir(files, temp, err);
}

static int write_text(const struct file_ops *files, const char *dir, const char *name,
                      const char *text, struct durable_result *ret_result, struct error *err)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    return durable_write_file(files, path, text, strlen(text), ret_result, err);
}

/* A file of the checkpoint's own directory, and its place in the manifest. */
static int commit_text(const struct checkpoint_save *save, const char *temp, const char *name,
                       const char *text, struct manifest *manifest, struct error *err)
{
    struct durable_result written;
    if (write_text(save->files, temp, name, text, &written, err) < 0)
        return -1;
    manifest->files[manifest->file_count++] =
        (struct manifest_file){name, written.bytes, written.xxh64, written.xxh64};
    return 0;
}

/* State, texts and manifest, and then the rename that makes them count. */
static int commit(const struct checkpoint_save *save, const char *temp,
                  const struct rank_report *reports, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct manifest manifest = {.step = save->state->step};
    list_files(arena, reports, save->comm->size, &manifest);
    auto_free char *state = checkpoint_state_print(save->state);
    struct durable_result written;
    if (commit_text(save, temp, CHECKPOINT_STATE, state, &manifest, err) < 0)
        return -1;
    for (int i = 0; i < CHECKPOINT_TEXTS; i++)
        if (save->texts[i] && commit_text(save, temp, checkpoint_text_name((enum checkpoint_text)i),
                                          save->texts[i], &manifest, err) < 0)
            return -1;
    auto_str struct str text;
    str_init(&text, MANIFEST_MAX_BYTES);
    manifest_print(&manifest, &text);
    assert(!text.truncated);
    auto_free char *path = xasprintf("%s/%s", save->dir, save->name);
    /* The order makes it durable: each file's data was synced when it was closed, then come the
     * directories' entries, and the rename last. After a power failure the checkpoint is there
     * whole, or under its temporary name. */
    if (write_text(save->files, temp, CHECKPOINT_MANIFEST, str_text(&text), &written, err) < 0 ||
        sync_dirs(save->files, temp, err) < 0 || durable_rename(save->files, temp, path, err) < 0)
        return -1;
    return 0;
}

/* ---- the whole ---- */

static int prepare(const struct checkpoint_save *save, struct notice *notice, int *ret_lock,
                   struct error *err)
{
    *notice = (struct notice){0};
    if (save->comm->rank == 0) {
        int result = make_temp(save, notice, ret_lock, err);
        outcome_set(&notice->outcome, result, err);
    }
    return share_notice(save, notice, err);
}

static int64_t count_bytes(const struct rank_report *reports, int ranks)
{
    int64_t bytes = 0;
    for (int rank = 0; rank < ranks; rank++)
        for (int part = 0; part < CHECKPOINT_PARTS; part++)
            for (int k = 0; k < reports[rank].parts[part].file_count; k++)
                bytes += reports[rank].parts[part].files[k].bytes;
    return bytes;
}

static int write_and_commit(const struct checkpoint_save *save, struct notice *notice,
                            int64_t *ret_bytes, struct error *err)
{
    const struct comm *comm = save->comm;
    struct rank_report mine = {0};
    int result = check_parts(save, err);
    if (result == 0)
        result = write_parts(save, notice->temp, &mine, err);
    outcome_set(&mine.outcome, result, err);
    auto_free struct rank_report *reports = xcalloc((size_t)comm->size, sizeof *reports);
    if (agree_gather(save->comm, save->stream, &mine, reports, sizeof mine, err) < 0)
        return -1;
    for (int rank = 0; rank < comm->size; rank++)
        if (outcome_get(&reports[rank].outcome, rank, err) < 0)
            return -1;
    *ret_bytes = count_bytes(reports, comm->size);
    if (comm->rank == 0)
        outcome_set(&notice->outcome, commit(save, notice->temp, reports, err), err);
    return share_notice(save, notice, err);
}

int checkpoint_save(const struct checkpoint_save *save, int64_t *ret_bytes, struct error *err)
{
    assert(!strchr(save->name, '/') && !durable_is_temp(save->name, NULL));
    struct notice notice;
    auto_close int lock = -1;
    int result = prepare(save, &notice, &lock, err);
    if (result == 0)
        result = write_and_commit(save, &notice, ret_bytes, err);
    /* After a failure all that was written; after a replacement the one that was replaced. */
    struct error ignored;
    if (save->comm->rank == 0 && notice.temp[0])
        durable_remove_tree(save->files, notice.temp, &ignored);
    return result;
}
