#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_BYTES = 4096 }; /* what a pipe that polls writable takes without blocking */

void output_open(struct output *output, int fd)
{
    *output = (struct output){.fd = fd};
    str_init(&output->waiting, OUTPUT_MAX_BYTES);
    struct stat st;
    if (fstat(fd, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
        return;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return; /* WRITE_BYTES are good enough for a pipe */
    output->fd = own;
    output->owns_fd = true;
}

void output_close(struct output *output)
{
    if (!output)
        return;
    if (output->owns_fd)
        close(output->fd);
    output->owns_fd = false;
    str_free(&output->waiting);
}

bool output_has_room(const struct output *output)
{
    return output->waiting.length < OUTPUT_ENOUGH_BYTES;
}

bool output_add(struct output *output, const char *bytes, size_t count)
{
    if (output->failure)
        return true;
    if (count > output->waiting.cap - output->waiting.length)
        return false;
    str_add_bytes(&output->waiting, bytes, count);
    return true;
}

bool output_wait(const struct output *output, int stop_fd, int timeout_ms)
{
    if (output->waiting.length == 0)
        return false;
    struct pollfd fds[] = {{.fd = output->fd, .events = POLLOUT},
                           {.fd = stop_fd, .events = POLLIN}};
    while (poll(fds, 2, timeout_ms) < 0)
        continue; /* a signal that nobody minds */
    return fds[0].revents != 0;
}

bool output_is_broken(const struct output *output)
{
    return output->failure && output->failure != EPIPE;
}

void output_flush(struct output *output)
{
    struct str *waiting = &output->waiting;
    size_t done = 0;
    while (done < waiting->length && output_wait(output, -1, 0)) {
        size_t left = waiting->length - done;
        ssize_t written = write(output->fd, waiting->text + done,
                                left < WRITE_BYTES ? left : (size_t)WRITE_BYTES);
        if (written < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (written < 0) {
            output->failure = errno;
            done = waiting->length;
            break;
        }
        done += (size_t)written;
    }
    if (done == 0)
        return;
    memmove(waiting->text, waiting->text + done, waiting->length - done);
    waiting->length -= done;
}
