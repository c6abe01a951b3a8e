#include "operator/local/local_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* The folder may be anybody's: what is there under our name is emptied only if it is a file of that
 * name alone, not what a link leads to, and a FIFO that nobody reads must not stop us. */
static int open_file(const char *path, struct error *err)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ELOOP)
        return error_set(err, ERR_EXISTS, "log %s: there is a link: remove it", path);
    if (fd < 0 && errno == ENXIO)
        return error_set(err, ERR_EXISTS, "log %s: there is something that is no file: remove it",
                         path);
    if (fd < 0)
        return error_errno(err, errno, "open log %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return error_set(err, ERR_EXISTS, "log %s: there is something that is no file: remove it",
                         path);
    }
    if (st.st_nlink > 1) {
        close(fd);
        return error_set(err, ERR_EXISTS, "log %s: the file has another name, too: remove this one",
                         path);
    }
    if (ftruncate(fd, 0) < 0) {
        error_errno(err, errno, "empty log %s", path);
        close(fd);
        return -1;
    }
    return fd;
}

int local_log_open(struct local_log *log, const char *path, struct error *err)
{
    *log = (struct local_log){.file = -1, .read_end = -1, .write_end = -1, .last_byte = '\n'};
    log->path = xstrdup(path);
    log->file = open_file(path, err);
    if (log->file < 0)
        return -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "pipe for log %s", path);
    log->read_end = ends[0];
    log->write_end = ends[1];
    /* our end only: a process that writes faster than we read has to wait */
    if (fcntl(log->read_end, F_SETFL, O_NONBLOCK) < 0)
        return error_errno(err, errno, "pipe for log %s", path);
    return 0;
}

void local_log_close(struct local_log *log)
{
    mem_cleanup_close(&log->file);
    mem_cleanup_close(&log->read_end);
    mem_cleanup_close(&log->write_end);
    free(take(log->path));
}

static void append(struct local_log *log, const char *bytes, size_t count)
{
    if (count > 0)
        log->last_byte = bytes[count - 1];
    while (count > 0) {
        ssize_t written = write(log->file, bytes, count);
        if (written < 0) {
            if (log->failure.code == ERR_NONE)
                error_errno(&log->failure, errno, "write log %s", log->path);
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

size_t local_log_pump(struct local_log *log, char chunk[LOCAL_LOG_CHUNK_BYTES])
{
    ssize_t count = read(log->read_end, chunk, LOCAL_LOG_CHUNK_BYTES);
    if (count <= 0)
        return 0;
    append(log, chunk, (size_t)count);
    return (size_t)count;
}

void local_log_mark(struct local_log *log, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char line[512];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    auto_free char *text = xasprintf("%s--- %s ---\n", log->last_byte == '\n' ? "" : "\n", line);
    append(log, text, strlen(text));
}
