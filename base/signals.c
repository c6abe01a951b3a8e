#include "base/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int open_fd(const int *numbers, size_t count, int *ret_fd, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != SIGHUP || !is_ignored(SIGHUP)) /* nohup means what it says */
            sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? error_errno(err, errno, "signalfd") : 0;
}

int signals_open(struct signals *signals, struct error *err)
{
    static const int child[] = {SIGCHLD}, stop[] = {SIGINT, SIGTERM, SIGHUP};
    *signals = (struct signals){.child_fd = -1, .stop_fd = -1};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, as some parents leave it, it would reap behind our back */
    if (open_fd(child, array_length(child), &signals->child_fd, err) < 0)
        return -1;
    return open_fd(stop, array_length(stop), &signals->stop_fd, err);
}

void signals_close(struct signals *signals)
{
    mem_cleanup_close(&signals->child_fd);
    mem_cleanup_close(&signals->stop_fd);
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
