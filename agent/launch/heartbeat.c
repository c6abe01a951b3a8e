#include "agent/launch/heartbeat.h"

#include "agent/launch/inherited_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEARTBEAT_FD "SHOAL_HEARTBEAT_FD"

/* In the pipe. */
struct beat {
    int64_t wait_ms;
    char doing[HEARTBEAT_DOING_BYTES];
};

_Static_assert(sizeof(struct beat) <= PIPE_BUF, "one write is whole or nothing");

struct heartbeat heartbeat_inherit(void)
{
    /* A data loader or script that the rank starts must not keep the pipe open: its end signals the
     * launcher that the rank is gone. */
    return (struct heartbeat){inherited_file_take(HEARTBEAT_FD, inherited_file_is_pipe)};
}

void heartbeat_send(const struct heartbeat *heartbeat, int64_t wait_ms, const char *doing)
{
    struct beat beat = {.wait_ms = wait_ms};
    snprintf(beat.doing, sizeof beat.doing, "%s", doing);
    if (heartbeat->fd >= 0 && write(heartbeat->fd, &beat, sizeof beat) < 0)
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
    struct beat beat;
    ssize_t n = -1;
    while (listener->pipe >= 0 && (n = read(listener->pipe, &beat, sizeof beat)) > 0) {
        listener->wait_ms = beat.wait_ms;
        listener->due_ms = beat.wait_ms > 0 ? now_ms + beat.wait_ms : INT64_MAX;
        beat.doing[sizeof beat.doing - 1] = '\0';
        memcpy(listener->doing, beat.doing, sizeof listener->doing);
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
