#include "agent/telemetry/termination_log.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

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

static void add_why(const char *why, struct str *out)
{
    str_printf(out, "%.*s\n", TERMINATION_LOG_WHY_BYTES, why);
    utf8_make_printable(out->text, out->length - 1); /* it may be cut within a character */
}

/* It is mounted by itself: another cannot be renamed to its place. A text that grows in one write,
 * and shrinks after it, is whole whenever the process is killed but between the two. */
static void overwrite(int fd, const struct str *text)
{
    if (pwrite(fd, str_text(text), text->length, 0) == (ssize_t)text->length)
        (void)!ftruncate(fd, (off_t)text->length);
}

void termination_log_write(struct termination_log *log, const char *why, const char *numbers)
{
    auto_str struct str text;
    str_init(&text, TRAINING_MAX_BYTES);
    if (why)
        add_why(why, &text);
    str_add(&text, numbers);
    overwrite(log->fd, &text);
}

/* The last line, if it is an object. "": there is none. */
static const char *numbers_of(const char *before)
{
    const char *end = before + strlen(before);
    while (end > before && end[-1] == '\n')
        end--;
    while (end > before && end[-1] != '\n')
        end--;
    return end[0] == '{' ? end : "";
}

void termination_log_text(const char *before, const char *why, const char *lines, struct str *out)
{
    const char *numbers = numbers_of(before);
    add_why(why, out);
    size_t taken = out->length + strlen(numbers);
    size_t room = taken < TRAINING_MAX_BYTES ? TRAINING_MAX_BYTES - taken : 0;
    while (strlen(lines) > room) {
        const char *newline = strchr(lines, '\n');
        lines = newline ? newline + 1 : "";
    }
    str_add(out, lines);
    str_add(out, numbers);
}

void termination_log_explain(const char *path, const char *why, const char *lines)
{
    char before[TRAINING_MAX_BYTES + 1];
    auto_str struct str text;
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = fd < 0 ? -1 : pread(fd, before, sizeof before - 1, 0);
    if (length < 0)
        return;
    before[length] = '\0';
    str_init(&text, 2 * TRAINING_MAX_BYTES);
    termination_log_text(before, why, lines, &text);
    overwrite(fd, &text);
}
