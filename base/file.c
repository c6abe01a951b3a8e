#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

int file_read(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_size,
              struct error *err)
{
    auto_close int opened = -1;
    int fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0) {
        fd = opened = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_errno(err, errno, "%s", path);
    }
    auto_free char *bytes = NULL;
    size_t size = 0;
    /* The size is not asked for: a pipe has none, and files of /proc say 0. */
    for (;;) {
        bytes = xrealloc(bytes, size + CHUNK_BYTES + 1);
        ssize_t n = read(fd, bytes + size, CHUNK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EISDIR) /* another path is meant: trying again does not help */
            return error_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
        if (n < 0)
            return error_errno(err, errno, "%s", path);
        if (n == 0)
            break;
        size += (size_t)n;
        if (size > max_bytes)
            return error_set(err, ERR_INPUT, "%s: larger than %zu bytes", path, max_bytes);
    }
    bytes[size] = '\0';
    *ret_bytes = take(bytes);
    *ret_size = size;
    return 0;
}

int file_map(const char *path, const uint8_t **ret_bytes, size_t *ret_size, struct error *err)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would block */
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return error_set(err, ERR_INPUT, "%s: %s", path,
                         S_ISREG(st.st_mode) ? "the file is empty: download it again"
                                             : "not a regular file");
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "map %s", path);
    *ret_bytes = bytes;
    *ret_size = (size_t)st.st_size;
    return 0;
}

void file_unmap(const uint8_t *bytes, size_t size)
{
    if (bytes)
        munmap((void *)bytes, size);
}

bool file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *file_absolute(const char *path)
{
    auto_free char *current = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (!current)
        return xstrdup(path);
    while (path[0] == '.' && (path[1] == '/' || !path[1]))
        for (path++; path[0] == '/';)
            path++;
    return xasprintf("%s%s%s", current, path[0] ? "/" : "", path);
}

/* A parent may start us with standard files closed. The next file that is opened gets such a
 * number, and messages for stderr would be written into it. */
int file_open_standard(struct error *err)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) /* the lowest that is free */
            return error_errno(err, errno, "open /dev/null");
    return 0;
}

/* Also when an earlier write has met EPIPE and left only stdio's mark of an error. */
static bool has_no_reader(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLOUT};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

int file_flush_standard(struct error *err)
{
    /* Output is buffered, so a full disk may show only now. A reader that has gone away (head) has
     * what it wanted. */
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || has_no_reader(STDOUT_FILENO))
        return 0;
    if (errno)
        return error_errno(err, errno, "write to stdout");
    return error_set(err, ERR_IO, "write to stdout: not all of it could be written");
}
