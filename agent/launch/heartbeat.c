#include "agent/launch/heartbeat.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEARTBEAT_FD "SHOAL_HEARTBEAT_FD"

struct heartbeat heartbeat_inherit(void)
{
    const char *text = getenv(HEARTBEAT_FD);
    int64_t fd;
    if (!text || !str_to_i64(text, 0, INT_MAX, &fd))
        return (struct heartbeat){-1};
    /* A data loader or script that the rank starts must not keep the pipe open: its end signals the
     * launcher that the rank is gone. */
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return (struct heartbeat){(int)fd};
}

void heartbeat_send(void *heartbeat, int64_t wait_ms)
{
    int fd = ((struct heartbeat *)heartbeat)->fd;
    if (fd >= 0 && write(fd, &wait_ms, sizeof wait_ms) < 0)
        return; /* the pipe is full of heartbeats, or the launcher is gone */
}

int heartbeat_open(struct heartbeat_listener *ret_listener, int *ret_fd, struct error *err)
{
    int ends[2];
    /* Neither end blocks: a launcher that is stopped (SIGSTOP, a debugger) must not hold up
     * training. */
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return error_errno(err, errno, "pipe");
    *ret_listener = (struct heartbeat_listener){.pipe = ends[0], .due_ms = INT64_MAX};
    *ret_fd = ends[1];
    return 0;
}

void heartbeat_set_inheritable(int fd)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(HEARTBEAT_FD, text, 1);
    /* In the child, between fork and exec: only this rank inherits it. */
    fcntl(fd, F_SETFD, 0);
}

void heartbeat_receive(struct heartbeat_listener *listener, int64_t now_ms)
{
    int64_t wait_ms;
    ssize_t n = -1;
    while (listener->pipe >= 0 && (n = read(listener->pipe, &wait_ms, sizeof wait_ms)) > 0) {
        listener->wait_ms = wait_ms;
        listener->due_ms = wait_ms > 0 ? now_ms + wait_ms : INT64_MAX;
    }
    if (n == 0)
        heartbeat_close(listener);
}

void heartbeat_close(struct heartbeat_listener *listener)
{
    if (listener->pipe >= 0)
        close(listener->pipe);
    *listener = (struct heartbeat_listener){.pipe = -1, .due_ms = INT64_MAX};
}
