#include "tests/support_files.h"

#include "base/mem.h"
#include "tests/support.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Counts an operation and says whether it is done; the mutex is held. errno is set if not. */
static bool allowed(struct faulty_files *f)
{
    int n = f->done++;
    if (n == f->fail_at && f->error == 0)
        f->crashed = true;
    if (n == f->fail_at || f->crashed) {
        errno = f->error ? f->error : EIO;
        return false;
    }
    return true;
}

static void remember(struct faulty_files *f, enum faulty_change_kind kind, const char *path,
                     const char *from, int fd)
{
    assert_true(f->change_count < FAULTY_MAX_CHANGES);
    f->changes[f->change_count++] = (struct faulty_change){
        .kind = kind,
        .path = path ? xstrdup(path) : NULL,
        .from = from ? xstrdup(from) : NULL,
        .fd = fd,
    };
}

static void forget(struct faulty_files *f, int i)
{
    struct faulty_change *c = &f->changes[i];
    free(c->path);
    free(c->from);
    if (c->replaced)
        unlink(c->replaced);
    free(c->replaced);
    if (c->fd >= 0)
        close(c->fd);
    memmove(c, c + 1, (size_t)(--f->change_count - i) * sizeof *c);
}

static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);
    return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static char *moved(char *path, const char *from, const char *to)
{
    if (!path || !is_below(path, from))
        return path;
    char *result = xasprintf("%s%s", to, path + strlen(from));
    free(path);
    return result;
}

/* The first `count` changes happened under names that are now others. */
static void move_paths(struct faulty_files *f, int count, const char *from, const char *to)
{
    for (int i = 0; i < count; i++) {
        f->changes[i].path = moved(f->changes[i].path, from, to);
        f->changes[i].from = moved(f->changes[i].from, from, to);
    }
}

static void swap_paths(struct faulty_files *f, int count, const char *a, const char *b)
{
    move_paths(f, count, a, "//between");
    move_paths(f, count, b, a);
    move_paths(f, count, "//between", b);
}

static int faulty_create(void *ctx, const char *path)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int fd = allowed(f) ? file_ops_system.create(NULL, path) : -1;
    if (fd >= 0) {
        remember(f, CHANGE_CREATE, path, NULL, -1);
        remember(f, CHANGE_DATA, NULL, NULL, dup(fd));
    }
    pthread_mutex_unlock(&f->mutex);
    return fd;
}

static ssize_t faulty_write(void *ctx, int fd, const void *data, size_t bytes)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    bool whole = allowed(f);
    /* A failed write has written a part, as it does on a full disk. */
    size_t part = whole ? bytes : bytes / 2;
    int error = errno;
    ssize_t n = f->crashed && f->done - 1 != f->fail_at ? -1 : write(fd, data, part);
    errno = error;
    pthread_mutex_unlock(&f->mutex);
    return whole ? n : -1;
}

static int faulty_fsync(void *ctx, int fd)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int result = allowed(f) ? 0 : -1; /* what is synced is in the book, it need not be on disk */
    if (result == 0) {
        struct stat synced, other;
        fstat(fd, &synced);
        for (int i = f->change_count - 1; i >= 0; i--)
            if (f->changes[i].kind == CHANGE_DATA && fstat(f->changes[i].fd, &other) == 0 &&
                other.st_ino == synced.st_ino)
                forget(f, i);
    }
    pthread_mutex_unlock(&f->mutex);
    return result;
}

static int faulty_close(void *ctx, int fd)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    bool good = allowed(f);
    int error = errno;
    close(fd); /* Linux closes even when it reports a failure */
    errno = error;
    pthread_mutex_unlock(&f->mutex);
    return good ? 0 : -1;
}

static int faulty_mkdir(void *ctx, const char *path)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int result = allowed(f) ? file_ops_system.mkdir(NULL, path) : -1;
    if (result == 0)
        remember(f, CHANGE_CREATE, path, NULL, -1);
    pthread_mutex_unlock(&f->mutex);
    return result;
}

static bool is_in(const char *path, const char *dir)
{
    auto_free char *copy = xstrdup(path);
    return strcmp(dirname(copy), dir) == 0;
}

static int faulty_sync_dir(void *ctx, const char *path)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int result = allowed(f) ? access(path, F_OK) : -1;
    for (int i = f->change_count - 1; i >= 0 && result == 0; i--)
        if (f->changes[i].kind != CHANGE_DATA && is_in(f->changes[i].path, path))
            forget(f, i);
    pthread_mutex_unlock(&f->mutex);
    return result;
}

static int faulty_rename(void *ctx, const char *from, const char *to)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    char *replaced = xasprintf("%s.replaced", to);
    bool is_there = link(to, replaced) == 0;
    int result = allowed(f) ? file_ops_system.rename(NULL, from, to) : -1;
    if (result == 0) {
        move_paths(f, f->change_count, from, to);
        remember(f, CHANGE_RENAME, to, from, -1);
        f->changes[f->change_count - 1].replaced = is_there ? take(replaced) : NULL;
    } else if (is_there) {
        unlink(replaced);
    }
    free(replaced);
    pthread_mutex_unlock(&f->mutex);
    return result;
}

static int faulty_exchange(void *ctx, const char *a, const char *b)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int result = allowed(f) ? file_ops_system.exchange(NULL, a, b) : -1;
    if (result == 0) {
        swap_paths(f, f->change_count, a, b);
        remember(f, CHANGE_EXCHANGE, b, a, -1);
    }
    pthread_mutex_unlock(&f->mutex);
    return result;
}

static int faulty_remove(void *ctx, const char *path)
{
    struct faulty_files *f = ctx;
    pthread_mutex_lock(&f->mutex);
    int result = allowed(f) ? file_ops_system.remove(NULL, path) : -1;
    for (int i = f->change_count - 1; i >= 0 && result == 0; i--)
        if (f->changes[i].kind == CHANGE_CREATE && strcmp(f->changes[i].path, path) == 0)
            forget(f, i);
    pthread_mutex_unlock(&f->mutex);
    return result;
}

void faulty_init(struct faulty_files *f, int fail_at, int error)
{
    *f = (struct faulty_files){
        .ops = {.ctx = f,
                .create = faulty_create,
                .write = faulty_write,
                .fsync = faulty_fsync,
                .close = faulty_close,
                .mkdir = faulty_mkdir,
                .sync_dir = faulty_sync_dir,
                .rename = faulty_rename,
                .exchange = faulty_exchange,
                .remove = faulty_remove},
        .fail_at = fail_at,
        .error = error,
    };
    pthread_mutex_init(&f->mutex, NULL);
}

/* Backwards, so that each change is undone under the names it was done with. */
void faulty_lose(struct faulty_files *f, enum faulty_loss loss)
{
    for (int i = f->change_count - 1; i >= 0 && loss != LOSE_NOTHING; i--) {
        const struct faulty_change *c = &f->changes[i];
        if (c->kind == CHANGE_DATA) {
            assert_int_equal(ftruncate(c->fd, 0), 0);
        } else if (loss == LOSE_DATA) {
            continue;
        } else if (c->kind == CHANGE_CREATE) {
            support_remove_tree(c->path);
        } else if (c->kind == CHANGE_RENAME) {
            rename(c->path, c->from);
            if (c->replaced)
                rename(c->replaced, c->path);
            move_paths(f, i, c->path, c->from);
        } else {
            file_ops_system.exchange(NULL, c->path, c->from);
            swap_paths(f, i, c->path, c->from);
        }
    }
}

void faulty_free(struct faulty_files *f)
{
    while (f->change_count > 0)
        forget(f, f->change_count - 1);
    pthread_mutex_destroy(&f->mutex);
}
