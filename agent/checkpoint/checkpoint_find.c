/* Several checkpoints in one directory: which is the newest, which are to go. */
#include "agent/checkpoint/checkpoint_files.h"

#include "agent/checkpoint/pretrained_index.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    const struct checkpoint_listed *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Whole weights for others, which no run goes on from. */
static bool is_export(struct arena *arena, const char *path)
{
    static const char *const files[] = {PRETRAINED_FILE, PRETRAINED_INDEX};
    for (size_t i = 0; i < array_length(files); i++)
        if (access(arena_printf(arena, "%s/%s", path, files[i]), F_OK) == 0)
            return true;
    return false;
}

static void consider(struct arena *arena, const char *dir, const struct dirent *entry,
                     struct checkpoint_listed *found, int *count,
                     struct checkpoint_skipped *skipped)
{
    /* Some file systems leave d_type unknown (readdir(3)): the manifest decides then. */
    if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
        return;
    const char *path = arena_printf(arena, "%s/%s", dir, entry->d_name);
    if (durable_is_replaced(path))
        return;
    struct manifest manifest;
    struct error err;
    bool is_temp = durable_is_temp(entry->d_name, NULL);
    if (!is_temp && checkpoint_read_manifest(arena, path, &manifest, &err) == 0) {
        found[(*count)++] = (struct checkpoint_listed){path, manifest.step};
        return;
    }
    if (!skipped || is_export(arena, path))
        return;
    lines_add(&skipped->paths, "%s", path);
    if (is_temp)
        lines_add(&skipped->reasons, "%s: left over from a save that did not finish", path);
    else
        lines_add(&skipped->reasons, "%s", err.msg);
}

int checkpoint_list(struct arena *arena, const char *dir, struct checkpoint_skipped *skipped,
                    struct checkpoint_listed **ret_found, int *ret_count, struct error *err)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    if (count < 0 && errno == ENOTDIR)
        return error_set(err, ERR_INPUT, "checkpoint directory %s: it is a file", dir);
    if (count < 0)
        return error_errno(err, errno, "checkpoint directory %s", dir);
    struct checkpoint_listed *found = arena_array(arena, struct checkpoint_listed, count + 1);
    *ret_count = 0;
    for (int i = 0; i < count; i++) {
        consider(arena, dir, entries[i], found, ret_count, skipped);
        free(entries[i]);
    }
    free(entries);
    qsort(found, (size_t)*ret_count, sizeof *found, compare);
    *ret_found = found;
    return 0;
}

/* One whose state cannot be read is nobody's. */
static bool is_of_run(const char *path, const char *run)
{
    struct checkpoint *checkpoint = NULL;
    struct error ignored;
    if (checkpoint_open(path, &checkpoint, &ignored) < 0)
        return false;
    bool is = strcmp(checkpoint_get_state(checkpoint)->run, run) == 0;
    checkpoint_close(checkpoint);
    return is;
}

int checkpoint_find_latest(const char *dir, const char *run, const struct checkpoint_listed *before,
                           struct checkpoint_skipped *skipped, struct checkpoint_found *ret_found,
                           struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct checkpoint_listed *found;
    int count;
    if (checkpoint_list(arena, dir, skipped, &found, &count, err) < 0)
        return -1;
    /* The newest first. `before`: that one was damaged, and the caller looks for an older one. */
    while (count > 0 && ((before && compare(&found[count - 1], before) >= 0) ||
                         (run && !is_of_run(found[count - 1].path, run))))
        count--;
    if (count == 0 && !run && checkpoint_check_foreign(dir, err) < 0)
        return -1;
    if (count == 0)
        return error_set(err, ERR_NOT_FOUND, "%s: there is no complete checkpoint in it%s", dir,
                         run ? " that this run saved" : "");
    *ret_found = (struct checkpoint_found){xstrdup(found[count - 1].path), found[count - 1].step};
    return 0;
}

int checkpoint_prune(const struct file_ops *files, const char *dir, int64_t step, int keep,
                     struct error *err)
{
    assert(keep >= 1);
    auto_arena struct arena *arena = arena_open();
    struct checkpoint_listed *found;
    int count;
    if (checkpoint_list(arena, dir, NULL, &found, &count, err) < 0)
        return -1;
    /* Later ones were passed over as damaged: counted, they would push out a good one. */
    while (count > 0 && found[count - 1].step > step)
        count--;
    for (int i = 0; i < count - keep; i++) {
        if (!checkpoint_is_own(found[i].path))
            continue; /* somebody keeps other files in it */
        /* Under another name first: half removed it must not look complete. */
        auto_free char *temp = durable_temp_name(found[i].path);
        if (durable_rename(files, found[i].path, temp, err) < 0 ||
            durable_remove_tree(files, temp, err) < 0)
            return -1;
    }
    return 0;
}
