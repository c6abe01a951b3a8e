#include "agent/launch/last_words.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAST_WORDS_FD "SHOAL_LAST_WORDS_FD"

_Static_assert(sizeof(struct last_words) <= PIPE_BUF, "one write is whole or nothing");

static atomic_int inherited = -1;

void last_words_inherit(void)
{
    const char *text = getenv(LAST_WORDS_FD);
    int64_t fd;
    if (!text || !str_to_i64(text, 0, INT_MAX, &fd))
        return;
    /* Neither the pipe nor its number is for what the rank starts: the number may be another file
     * there. */
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    atomic_store(&inherited, (int)fd);
    unsetenv(LAST_WORDS_FD);
}

void last_words_send(const struct error *err, bool has_met)
{
    int fd = atomic_exchange(&inherited, -1);
    if (fd < 0)
        return;
    struct last_words words = {.code = (int32_t)err->code, .has_met = has_met};
    snprintf(words.text, sizeof words.text, "%s", err->msg);
    (void)!write(fd, &words, sizeof words);
}

int last_words_open(int *ret_fd, int *ret_inherited, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return error_errno(err, errno, "pipe");
    *ret_fd = ends[0];
    *ret_inherited = ends[1];
    return 0;
}

void last_words_set_inheritable(int fd)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(LAST_WORDS_FD, text, 1);
    fcntl(fd, F_SETFD, 0);
}

void last_words_take(int fd, struct last_words *ret_words)
{
    *ret_words = (struct last_words){.code = ERR_NONE};
    if (fd < 0)
        return;
    if (read(fd, ret_words, sizeof *ret_words) != sizeof *ret_words)
        *ret_words = (struct last_words){.code = ERR_NONE};
    ret_words->text[sizeof ret_words->text - 1] = '\0';
    close(fd);
}
