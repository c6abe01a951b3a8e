#include "agent/checkpoint_files.h"

#include "base/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

const char *checkpoint_part_name(enum checkpoint_part part)
{
    static const char *const names[] = {"model", "optimizer"};
    return names[part];
}

bool checkpoint_is_temp(const char *name)
{
    return strstr(name, CHECKPOINT_TEMP) != NULL;
}

char *checkpoint_temp_name(const char *name)
{
    unsigned long long number = 0;
    ssize_t got = getrandom(&number, sizeof number, 0);
    assert(got == sizeof number); /* so few bytes always come once the system is up */
    (void)got;
    return xasprintf("%s" CHECKPOINT_TEMP "%016llx", name, number);
}

int checkpoint_remove_temps(const struct file_ops *files, const char *dir, struct error *err)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    if (count < 0)
        return error_errno(err, errno, "read directory %s", dir);
    int result = 0;
    for (int i = 0; i < count; i++) {
        if (result == 0 && checkpoint_is_temp(entries[i]->d_name)) {
            auto_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
            result = durable_remove_tree(files, path, err);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

/* Why there is no manifest in a directory. */
static int explain_incomplete(const char *path, struct error *err)
{
    auto_free char *foreign = xasprintf("%s/.metadata", path);
    if (access(path, F_OK) < 0)
        return error_set(err, ERR_NOT_FOUND, "%s: there is no such checkpoint", path);
    if (access(foreign, F_OK) == 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: a checkpoint in PyTorch's own format (.metadata), which is not read",
                         path);
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
