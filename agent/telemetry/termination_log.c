#include "agent/telemetry/termination_log.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct termination_log {
    int fd;
};

struct termination_log *termination_log_open(const char *path)
{
    /* The kubelet makes it: where there is none, nobody reads one. */
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    struct termination_log *log = xcalloc(1, sizeof *log);
    log->fd = take_fd(fd);
    return log;
}

void termination_log_close(struct termination_log *log)
{
    if (!log)
        return;
    close(log->fd);
    free(log);
}

void termination_log_write(struct termination_log *log, const char *why, const char *numbers)
{
    auto_str struct str text;
    str_init(&text, TRAINING_MAX_BYTES);
    if (why)
        str_printf(&text, "%.*s\n", TERMINATION_LOG_WHY_BYTES, why);
    for (size_t i = 0; i + 1 < text.length; i++)
        if (text.text[i] == '\n')
            text.text[i] = ' ';
    str_add(&text, numbers);
    /* It is mounted by itself: another cannot be renamed to its place. A text that grows in one
     * write, and shrinks after it, is whole whenever the process is killed but between the two. */
    if (pwrite(log->fd, str_text(&text), text.length, 0) == (ssize_t)text.length)
        (void)!ftruncate(log->fd, (off_t)text.length);
}
