#include "base/durable.h"

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { WRITE_MAX_BYTES = 16 << 20, TREE_MAX_DEPTH = 8, TEMP_DIGITS = 16 };
#define TEMP_MARK     ".tmp-"
#define REPLACED_MARK ".shoal-replaced"

/* ---- the system's own operations ---- */

static int system_create(void *ctx, const char *path)
{
    (void)ctx;
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

static ssize_t system_write(void *ctx, int fd, const void *data, size_t bytes)
{
    (void)ctx;
    return write(fd, data, bytes);
}

static int system_fsync(void *ctx, int fd)
{
    (void)ctx;
    return fsync(fd);
}

static int system_close(void *ctx, int fd)
{
    (void)ctx;
    return close(fd);
}

static int system_mkdir(void *ctx, const char *path)
{
    (void)ctx;
    return mkdir(path, 0755);
}

static int system_sync_dir(void *ctx, const char *path)
{
    (void)ctx;
    auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

static int system_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return rename(from, to);
}

static int system_exchange(void *ctx, const char *a, const char *b)
{
    (void)ctx;
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static int system_remove(void *ctx, const char *path)
{
    (void)ctx;
    return remove(path);
}

const struct file_ops file_ops_system = {
    .create = system_create,
    .write = system_write,
    .fsync = system_fsync,
    .close = system_close,
    .mkdir = system_mkdir,
    .sync_dir = system_sync_dir,
    .rename = system_rename,
    .exchange = system_exchange,
    .remove = system_remove,
};

/* ---- one file ---- */

struct durable_file {
    const struct file_ops *ops;
    char *path;
    int fd;
    int64_t bytes;
    XXH64_state_t *hash;
};

int durable_create(const struct file_ops *ops, const char *path, struct durable_file **ret_file,
                   struct error *err)
{
    int fd = ops->create(ops->ctx, path);
    if (fd < 0)
        return error_errno(err, errno, "create %s", path);
    struct durable_file *f = xcalloc(1, sizeof *f);
    *f = (struct durable_file){
        .ops = ops, .path = xstrdup(path), .fd = fd, .hash = XXH64_createState()};
    assert(f->hash);
    XXH64_reset(f->hash, 0);
    *ret_file = f;
    return 0;
}

int durable_write(struct durable_file *f, const void *data, size_t bytes, struct error *err)
{
    const unsigned char *p = data;
    while (bytes > 0) {
        size_t most = bytes < WRITE_MAX_BYTES ? bytes : WRITE_MAX_BYTES;
        ssize_t n = f->ops->write(f->ops->ctx, f->fd, p, most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_errno(err, n < 0 ? errno : EIO, "write %s: %zu more bytes are needed",
                               f->path, bytes);
        XXH64_update(f->hash, p, (size_t)n);
        f->bytes += n;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static void free_file(struct durable_file *f)
{
    XXH64_freeState(f->hash);
    free(f->path);
    free(f);
}

void durable_abandon(struct durable_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        f->ops->close(f->ops->ctx, f->fd);
    f->ops->remove(f->ops->ctx, f->path);
    free_file(f);
}

int durable_finish(struct durable_file *f, struct durable_result *ret_result, struct error *err)
{
    /* Before the rename that makes the file count: ext4 and XFS may else store the new name first,
     * and a crash leaves an empty file. */
    int result = f->ops->fsync(f->ops->ctx, f->fd);
    if (result < 0)
        error_errno(err, errno, "sync %s", f->path);
    /* Closed only once, also if close() fails: on Linux the descriptor is gone then, and may be
     * another file's already. */
    int fd = take_fd(f->fd);
    if (f->ops->close(f->ops->ctx, fd) < 0 && result == 0)
        result = error_errno(err, errno, "close %s", f->path);
    if (result < 0) {
        durable_abandon(f);
        return -1;
    }
    *ret_result = (struct durable_result){.bytes = f->bytes, .xxh64 = XXH64_digest(f->hash)};
    free_file(f);
    return 0;
}

int durable_write_file(const struct file_ops *ops, const char *path, const void *data, size_t bytes,
                       struct durable_result *ret_result, struct error *err)
{
    struct durable_file *file;
    if (durable_create(ops, path, &file, err) < 0)
        return -1;
    if (durable_write(file, data, bytes, err) < 0) {
        durable_abandon(file);
        return -1;
    }
    return durable_finish(file, ret_result, err);
}

/* ---- directories ---- */

int durable_sync_dir(const struct file_ops *ops, const char *path, struct error *err)
{
    if (ops->sync_dir(ops->ctx, path) < 0)
        return error_errno(err, errno, "sync directory %s", path);
    return 0;
}

int durable_make_dir(const struct file_ops *ops, const char *path, struct error *err)
{
    if (ops->mkdir(ops->ctx, path) < 0)
        return error_errno(err, errno, "make directory %s", path);
    return 0;
}

static int sync_parent(const struct file_ops *ops, const char *path, struct error *err)
{
    auto_free char *copy = xstrdup(path); /* dirname writes into it */
    return durable_sync_dir(ops, dirname(copy), err);
}

int durable_make_dirs(const struct file_ops *ops, const char *path, struct error *err)
{
    auto_free char *ancestor = xstrdup(path);
    for (char *slash = ancestor; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        struct stat st;
        if (stat(ancestor, &st) < 0) {
            /* Another rank may have made it meanwhile. */
            if (ops->mkdir(ops->ctx, ancestor) < 0 && errno != EEXIST)
                return error_errno(err, errno, "make directory %s", ancestor);
            /* The name of a new directory lies in its parent, which has to be synced as well. */
            if (sync_parent(ops, ancestor, err) < 0)
                return -1;
        } else if (!S_ISDIR(st.st_mode)) {
            return error_set(err, ERR_EXISTS, "%s is not a directory", ancestor);
        }
        if (slash)
            *slash = '/';
    }
    return 0;
}

static int rename_failed(const char *from, const char *to, struct error *err)
{
    return error_errno(err, errno, "rename %s to %s", from, to);
}

/* exchange() by renames, where the file system has none. Whole at any time is what has the name
 * `to`, or the name of the old one meanwhile, which is not one of those that are removed as left
 * over. */
static int exchange_by_renames(const struct file_ops *ops, const char *from, const char *to,
                               struct error *err)
{
    auto_free char *old = xasprintf("%s" REPLACED_MARK, to);
    if (durable_remove_tree(ops, old, err) < 0) /* of one who was killed, and `to` is whole */
        return error_wrap(err, "rename %s to %s", from, to);
    if (ops->rename(ops->ctx, to, old) < 0)
        return rename_failed(from, to, err);
    if (ops->rename(ops->ctx, from, to) == 0) {
        ops->rename(ops->ctx, old, from); /* else it stays under that name until it is replaced */
        return 0;
    }
    int why = errno;
    ops->rename(ops->ctx, old, to);
    errno = why;
    return rename_failed(from, to, err);
}

static int exchange(const struct file_ops *ops, const char *from, const char *to, struct error *err)
{
    if (ops->exchange(ops->ctx, from, to) == 0)
        return 0;
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
        return exchange_by_renames(ops, from, to, err);
    return rename_failed(from, to, err);
}

int durable_rename(const struct file_ops *ops, const char *from, const char *to, struct error *err)
{
    struct stat st;
    /* rename(2) cannot replace a directory that is not empty, nor by a file: which shall not be. */
    bool both =
        lstat(to, &st) == 0 && S_ISDIR(st.st_mode) && lstat(from, &st) == 0 && S_ISDIR(st.st_mode);
    if (both && exchange(ops, from, to, err) < 0)
        return -1;
    if (!both && ops->rename(ops->ctx, from, to) < 0)
        return rename_failed(from, to, err);
    if (sync_parent(ops, to, err) == 0)
        return 0;
    struct error ignored;
    if (both) /* what was there before is not `from`, which the caller removes */
        exchange(ops, from, to, &ignored);
    return -1;
}

/* ---- temporary names ---- */

char *durable_temp_name(const char *name)
{
    unsigned long long number = 0;
    ssize_t got = getrandom(&number, sizeof number, 0);
    assert(got == sizeof number); /* so few bytes always come once the system is up */
    (void)got;
    return xasprintf("%s" TEMP_MARK "%0*llx", name, TEMP_DIGITS, number);
}

int durable_try_dir(const struct file_ops *ops, const char *path, struct error *err)
{
    auto_free char *dir = file_absolute(path);
    auto_free char *probe = xasprintf("%s/try", dir), *temp = durable_temp_name(probe);
    if (durable_make_dirs(ops, dir, err) < 0)
        return -1;
    int fd = ops->create(ops->ctx, temp);
    if (fd < 0)
        return error_errno(err, errno, "user %lld cannot make a file in %s", (long long)geteuid(),
                           dir);
    ops->close(ops->ctx, fd);
    ops->remove(ops->ctx, temp);
    return 0;
}

bool durable_is_temp(const char *name, const char *of)
{
    size_t length = strlen(name), tail = strlen(TEMP_MARK) + TEMP_DIGITS;
    if (length <= tail || (of && strlen(of) != length - tail) ||
        (of && strncmp(name, of, length - tail) != 0))
        return false;
    const char *digits = name + length - TEMP_DIGITS;
    return strncmp(name + length - tail, TEMP_MARK, strlen(TEMP_MARK)) == 0 &&
           strspn(digits, "0123456789abcdef") == TEMP_DIGITS;
}

bool durable_is_replaced(const char *path)
{
    size_t length = strlen(path), tail = strlen(REPLACED_MARK);
    if (length <= tail || strcmp(path + length - tail, REPLACED_MARK) != 0)
        return false;
    auto_free char *successor = xasprintf("%.*s", (int)(length - tail), path);
    return access(successor, F_OK) == 0;
}

int durable_remove_temp_files(const struct file_ops *ops, const char *path, struct error *err)
{
    auto_free char *dir_copy = xstrdup(path), *base_copy = xstrdup(path);
    const char *dir = dirname(dir_copy), *base = basename(base_copy); /* they write into them */
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    if (count < 0)
        return error_errno(err, errno, "read directory %s", dir);
    int result = 0;
    for (int i = 0; i < count; i++) {
        auto_free char *temp = xasprintf("%s/%s", dir, entries[i]->d_name);
        struct stat st;
        if (result == 0 && durable_is_temp(entries[i]->d_name, base) && lstat(temp, &st) == 0 &&
            S_ISREG(st.st_mode) && ops->remove(ops->ctx, temp) < 0)
            result = error_errno(err, errno, "remove %s", temp);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int remove_tree(const struct file_ops *ops, const char *path, int depth, struct error *err)
{
    struct stat st;
    /* lstat() and not stat(): a link is removed, and what it leads to is left alone. */
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "remove %s", path);
    if (S_ISDIR(st.st_mode)) {
        if (depth == TREE_MAX_DEPTH)
            return error_set(err, ERR_IO, "remove %s: too deep", path);
        struct dirent **entries;
        int count = scandir(path, &entries, NULL, alphasort);
        if (count < 0)
            return error_errno(err, errno, "read directory %s", path);
        int result = 0;
        for (int i = 0; i < count; i++) {
            const char *name = entries[i]->d_name;
            if (result == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
                auto_free char *child = xasprintf("%s/%s", path, name);
                result = remove_tree(ops, child, depth + 1, err);
            }
            free(entries[i]);
        }
        free(entries);
        if (result < 0)
            return -1;
    }
    if (ops->remove(ops->ctx, path) < 0 && errno != ENOENT)
        return error_errno(err, errno, "remove %s", path);
    return 0;
}

int durable_remove_tree(const struct file_ops *ops, const char *path, struct error *err)
{
    return remove_tree(ops, path, 0, err);
}
