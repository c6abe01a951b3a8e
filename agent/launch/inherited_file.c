#include "agent/launch/inherited_file.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int inherited_file_pipe(int *ret_read, int *ret_write, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return error_errno(err, errno, "pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

void inherited_file_give(const char *variable, int fd)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(variable, text, 1);
    fcntl(fd, F_SETFD, 0);
}

int inherited_file_take(const char *variable, bool (*is_right)(int fd))
{
    const char *text = getenv(variable);
    int64_t fd;
    bool is_number = text && str_to_i64(text, 0, INT_MAX, &fd);
    unsetenv(variable);
    if (!is_number || !is_right((int)fd))
        return -1;
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return (int)fd;
}

bool inherited_file_is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}
