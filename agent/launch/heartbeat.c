#include "agent/launch/heartbeat.h"

#include "agent/launch/inherited_file.h"

#include <unistd.h>

#define HEARTBEAT_FD "SHOAL_HEARTBEAT_FD"

struct heartbeat heartbeat_inherit(void)
{
    /* A data loader or script that the rank starts must not keep the pipe open: its end signals the
     * launcher that the rank is gone. */
    return (struct heartbeat){inherited_file_take(HEARTBEAT_FD, inherited_file_is_pipe)};
}

void heartbeat_send(void *heartbeat, int64_t wait_ms)
{
    int fd = ((struct heartbeat *)heartbeat)->fd;
    if (fd >= 0 && write(fd, &wait_ms, sizeof wait_ms) < 0)
        return; /* the pipe is full of heartbeats, or the launcher is gone */
}

int heartbeat_open(struct heartbeat_listener *ret_listener, int *ret_fd, struct error *err)
{
    int pipe;
    if (inherited_file_pipe(&pipe, ret_fd, err))
        return -1;
    *ret_listener = (struct heartbeat_listener){.pipe = pipe, .due_ms = INT64_MAX};
    return 0;
}

void heartbeat_set_inheritable(int fd)
{
    inherited_file_give(HEARTBEAT_FD, fd);
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
