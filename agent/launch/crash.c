#include "agent/launch/crash.h"

#include "agent/launch/mapped_file.h"
#include "base/mem.h"

#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, STACK_BYTES = 64 * 1024, HEAD_BYTES = 96 };

/* One per signal. The lines are made beforehand: a handler may not format. */
static struct crash {
    int number;
    const char *name;
    char head[HEAD_BYTES];
} crashes[] = {
    {.number = SIGSEGV, .name = "SIGSEGV"}, {.number = SIGBUS, .name = "SIGBUS"},
    {.number = SIGFPE, .name = "SIGFPE"},   {.number = SIGILL, .name = "SIGILL"},
    {.number = SIGABRT, .name = "SIGABRT"},
};
/* A stack of its own: after an overflow of the thread's stack a handler could not even be called on
 * that one. */
static char stack[STACK_BYTES];

static void write_text(const char *text)
{
    /* write() is async-signal-safe (signal-safety(7)); printf() may wait for a lock that the
     * crashed code holds. */
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* What a file has no bytes for any more cannot be read through memory. */
static void name_file(const siginfo_t *info)
{
    static char path[PATH_MAX];
    if (info->si_signo != SIGBUS || info->si_code != BUS_ADRERR ||
        !mapped_file(info->si_addr, path, sizeof path))
        return;
    write_text("shoal-agent: ");
    write_text(path);
    write_text(": a part of it is gone: it was cut off while the run read it, or its disk fails\n");
}

static void on_crash(int number, siginfo_t *info, void *ignored)
{
    (void)ignored;
    void *frames[FRAMES_MAX];
    name_file(info);
    for (size_t i = 0; i < array_length(crashes); i++) {
        const char *head = crashes[i].head;
        if (crashes[i].number == number && write(STDERR_FILENO, head, strlen(head)) < 0)
            break;
    }
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    raise(number); /* taken on return, by nobody: SA_RESETHAND */
}

void crash_install_handlers(int rank)
{
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    void *frame;
    (void)backtrace(&frame, 1); /* loads what it needs now: in a handler it could not allocate */
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < array_length(crashes); i++) {
        struct crash *crash = &crashes[i];
        struct sigaction before;
        const struct sigaction action = {.sa_sigaction = on_crash,
                                         .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND)};
        snprintf(crash->head, sizeof crash->head, "shoal-agent: rank %d: %s, called from:\n", rank,
                 crash->name);
        /* A handler that is there already is a sanitizer's or a debugger's, which knows more. */
        if (sigaction(crash->number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(crash->number, &action, NULL);
    }
}
