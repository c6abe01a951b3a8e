#include "agent/telemetry/append_file.h"

#include "base/durable.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct append_file {
    int fd;
    char *path;
};

/* The directories above the file. */
static int make_directories(const char *path, struct error *err)
{
    auto_free char *above = xstrdup(path);
    char *slash = strrchr(above, '/');
    if (!slash || slash == above)
        return 0;
    *slash = '\0';
    return durable_make_dirs(&file_ops_system, above, err);
}

/* Whether the file begins with `head`. */
static int check_head(const struct append_file *file, const char *head, struct error *err)
{
    size_t length = strlen(head);
    auto_free char *found = xcalloc(1, length + 1);
    if (pread(file->fd, found, length, 0) < 0)
        return error_errno(err, errno, "read %s", file->path);
    if (strcmp(found, head) != 0)
        return error_set(err, ERR_EXISTS,
                         "%s: has other columns than this run would write: remove it, or name "
                         "another file",
                         file->path);
    return 0;
}

static int begin(struct append_file *file, const char *head, struct error *err)
{
    struct stat info;
    if (fstat(file->fd, &info) < 0)
        return error_errno(err, errno, "open %s", file->path);
    if (info.st_size == 0)
        return append_file_write(file, head, strlen(head), err);
    if (check_head(file, head, err) < 0)
        return -1;
    /* A run that was killed may have left half a line: the next row must not continue it. */
    char last;
    if (pread(file->fd, &last, 1, info.st_size - 1) == 1 && last != '\n')
        return append_file_write(file, "\n", 1, err);
    return 0;
}

int append_file_open(const char *path, const char *head, struct append_file **ret_file,
                     struct error *err)
{
    if (make_directories(path, err) < 0)
        return -1;
    /* Appending: a resumed run goes on in its file, and whoever rotates or truncates it meanwhile
     * leaves no hole. */
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EISDIR)
        return error_set(err, ERR_EXISTS, "%s is a directory: name a file", path);
    if (fd < 0)
        return error_errno(err, errno, "open %s", path);
    struct append_file *file = xcalloc(1, sizeof *file);
    *file = (struct append_file){.fd = fd, .path = xstrdup(path)};
    if (begin(file, head, err) < 0) {
        append_file_close(file);
        return -1;
    }
    *ret_file = file;
    return 0;
}

void append_file_close(struct append_file *file)
{
    if (!file)
        return;
    close(file->fd);
    free(file->path);
    free(file);
}

int append_file_write(struct append_file *file, const void *bytes, size_t count, struct error *err)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t n = write(file->fd, at, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "write %s", file->path);
        at += n;
        count -= (size_t)n;
    }
    return 0;
}
