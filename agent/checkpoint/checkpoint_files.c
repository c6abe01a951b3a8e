#include "agent/checkpoint/checkpoint_files.h"

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *checkpoint_part_name(enum checkpoint_part part)
{
    static const char *const names[] = {"model", "optimizer"};
    return names[part];
}

const char *checkpoint_text_name(enum checkpoint_text text)
{
    static const char *const names[] = {"agent_config.yaml", "config.json"};
    return names[text];
}

#define FULL_FILE CHECKPOINT_FULL ".safetensors" /* of an image model */

/* Where in a checkpoint something lies. */
enum level { TOP, PART, FULL };

/* Is it the name of something that saving puts into a checkpoint? */
static bool is_own_name(const char *name, enum level level, mode_t mode)
{
    if (level == PART)
        return S_ISREG(mode) && str_starts_with(name, "shard-") &&
               str_ends_with(name, ".safetensors");
    if (level == FULL)
        return S_ISREG(mode) && (str_ends_with(name, ".safetensors") ||
                                 str_ends_with(name, ".json") || str_ends_with(name, ".model") ||
                                 str_ends_with(name, ".txt") || str_ends_with(name, ".jinja"));
    if (strcmp(name, CHECKPOINT_FULL) == 0 || durable_is_temp(name, CHECKPOINT_FULL))
        return S_ISDIR(mode);
    if (strcmp(name, FULL_FILE) == 0 || durable_is_temp(name, FULL_FILE))
        return S_ISREG(mode);
    for (int i = 0; i < CHECKPOINT_PARTS; i++)
        if (strcmp(name, checkpoint_part_name((enum checkpoint_part)i)) == 0)
            return S_ISDIR(mode);
    for (int i = 0; i < CHECKPOINT_TEXTS; i++)
        if (strcmp(name, checkpoint_text_name((enum checkpoint_text)i)) == 0)
            return S_ISREG(mode);
    return S_ISREG(mode) &&
           (strcmp(name, CHECKPOINT_MANIFEST) == 0 || strcmp(name, CHECKPOINT_STATE) == 0);
}

static enum level level_of(const char *name)
{
    return str_starts_with(name, CHECKPOINT_FULL) ? FULL : PART;
}

/* Asked before anything is removed or replaced: a directory in which somebody keeps other files is
 * not ours to delete. */
static bool holds_only_own(const char *path, enum level level)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, NULL);
    bool own = count >= 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        auto_free char *child = xasprintf("%s/%s", path, name);
        struct stat st;
        if (own && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            own = lstat(child, &st) == 0 && is_own_name(name, level, st.st_mode) &&
                  (!S_ISDIR(st.st_mode) || holds_only_own(child, level_of(name)));
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return own;
}

bool checkpoint_is_own(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && holds_only_own(path, TOP);
}

int checkpoint_lock_temp(const char *path)
{
    /* flock() ends with the process, however it dies. So a lock tells a running save from what a
     * killed one left. */
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

/* Unless another run writes into it: its lock ends with the process. Locked until it is gone, so
 * that nobody begins to write into it meanwhile. */
static int remove_unused(const struct file_ops *files, const char *path, struct error *err)
{
    auto_close int fd = checkpoint_lock_temp(path);
    if (fd < 0 && errno == EWOULDBLOCK)
        return 0;
    return durable_remove_tree(files, path, err);
}

int checkpoint_remove_temps(const struct file_ops *files, const char *dir, struct error *err)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    if (count < 0)
        return error_errno(err, errno, "read directory %s", dir);
    int result = 0;
    for (int i = 0; i < count; i++) {
        auto_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        if (result == 0 && durable_is_temp(entries[i]->d_name, NULL) && checkpoint_is_own(path))
            result = remove_unused(files, path, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int checkpoint_clear_path(const struct file_ops *files, const char *path, struct error *err)
{
    struct stat st;
    auto_free char *manifest = xasprintf("%s/" CHECKPOINT_MANIFEST, path);
    auto_free char *aside = xasprintf("%s.incomplete", path);
    if (lstat(path, &st) < 0)
        return 0;
    if (!checkpoint_is_own(path))
        return error_set(err, ERR_EXISTS,
                         "%s is in the way: it holds other files too; move it away", path);
    /* Complete: the rename of the new one will replace it in one step, so that there is a
     * checkpoint at each moment. */
    if (access(manifest, F_OK) == 0)
        return 0;
    if (lstat(aside, &st) == 0)
        return error_set(err, ERR_EXISTS,
                         "%s is in the way: it is no complete checkpoint, and there is a %s "
                         "already; remove what is not wanted",
                         path, aside);
    log_warning("%s is no complete checkpoint: it is called %s now", path, aside);
    return durable_rename(files, path, aside, err);
}

/* Why there is no manifest in a directory. */
static int explain_incomplete(const char *path, struct error *err)
{
    if (access(path, F_OK) < 0)
        return error_set(err, ERR_NOT_FOUND, "%s: there is no such checkpoint", path);
    if (checkpoint_check_foreign(path, err) < 0)
        return -1;
    return error_set(err, ERR_NOT_FOUND,
                     "%s: not a complete checkpoint: it has no " CHECKPOINT_MANIFEST
                     ", which is written last",
                     path);
}

int checkpoint_read_manifest(struct arena *arena, const char *path, struct manifest *ret_manifest,
                             struct error *err)
{
    auto_free char *file = xasprintf("%s/" CHECKPOINT_MANIFEST, path);
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(file, MANIFEST_MAX_BYTES, &text, &bytes, err) < 0)
        return err->code == ERR_NOT_FOUND ? explain_incomplete(path, err) : -1;
    return manifest_parse(arena, file, text, bytes, ret_manifest, err);
}
