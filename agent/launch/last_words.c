#include "agent/launch/last_words.h"

#include "agent/launch/inherited_file.h"
#include "agent/launch/stop.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define LAST_WORDS_FD "SHOAL_LAST_WORDS_FD"

_Static_assert(sizeof(struct last_words) <= PIPE_BUF, "one write is whole or nothing");

static atomic_int inherited = -1;

void last_words_inherit(void)
{
    atomic_store(&inherited, inherited_file_take(LAST_WORDS_FD, inherited_file_is_pipe));
}

void last_words_met(int new_launchers)
{
    int fd = atomic_load(&inherited);
    const struct last_words words = {
        .code = ERR_NONE, .has_met = true, .new_launchers = new_launchers};
    if (fd >= 0)
        (void)!write(fd, &words, sizeof words);
}

void last_words_send(const struct error *err, bool has_met)
{
    int fd = atomic_exchange(&inherited, -1);
    if (fd < 0)
        return;
    struct last_words words = {.code = (int32_t)err->code,
                               .has_met = has_met,
                               .new_launchers = LAST_WORDS_NOT_ASKED,
                               .was_asked = stop_requested(NULL),
                               .was_asked_by_others = stop_requested_by_others()};
    snprintf(words.text, sizeof words.text, "%s", err->msg);
    (void)!write(fd, &words, sizeof words);
}

int last_words_open(int *ret_fd, int *ret_inherited, struct error *err)
{
    return inherited_file_pipe(ret_fd, ret_inherited, err);
}

void last_words_set_inheritable(int fd)
{
    inherited_file_give(LAST_WORDS_FD, fd);
}

void last_words_take(int fd, struct last_words *ret_words)
{
    struct last_words words;
    *ret_words = (struct last_words){.code = ERR_NONE, .new_launchers = LAST_WORDS_NOT_ASKED};
    if (fd < 0)
        return;
    while (read(fd, &words, sizeof words) == sizeof words) {
        words.has_met |= ret_words->has_met;
        if (words.new_launchers < ret_words->new_launchers)
            words.new_launchers = ret_words->new_launchers;
        words.text[sizeof words.text - 1] = '\0';
        *ret_words = words;
    }
    close(fd);
}
