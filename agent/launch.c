#include "agent/launch.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct ranks {
    pid_t *pids; /* [count]; 0: ended */
    int count, alive;
    int exit_code;       /* of the first that failed; 0: none yet */
    int64_t deadline_ms; /* kill what is left then; 0: nobody failed yet */
};

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* In the child. Does not return. */
static void become_rank(const struct topology *t, int local_rank, char *const *argv,
                        const sigset_t *mask, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(EXIT_RETRYABLE);
    set_number(ENV_LOCAL_RANK, local_rank);
    set_number(ENV_LOCAL_WORLD_SIZE, t->local_size);
    set_number(ENV_RANK, t->rank + local_rank);
    set_number(ENV_WORLD_SIZE, t->world_size);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv("/proc/self/exe", argv);
    dprintf(STDERR_FILENO, "shoal-agent: cannot start rank %d again\n", t->rank + local_rank);
    _exit(EXIT_FAILED);
}

static void signal_all(const struct ranks *ranks, int number)
{
    for (int i = 0; i < ranks->count; i++)
        if (ranks->pids[i] > 0)
            kill(ranks->pids[i], number);
}

static int start_ranks(const struct topology *t, char *const *argv, const sigset_t *mask,
                       struct ranks *ranks, struct error *err)
{
    pid_t parent = getpid();
    for (int i = 0; i < ranks->count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return error_errno(err, errno, "start local rank %d", i);
        if (pid == 0)
            become_rank(t, i, argv, mask, parent);
        ranks->pids[i] = pid;
        ranks->alive++;
    }
    return 0;
}

static void note_end(struct ranks *ranks, pid_t pid, int status)
{
    for (int i = 0; i < ranks->count; i++) {
        if (ranks->pids[i] != pid)
            continue;
        ranks->pids[i] = 0;
        ranks->alive--;
        int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (code == 0 || ranks->exit_code != 0)
            return;
        ranks->exit_code = code;
        ranks->deadline_ms = clock_monotonic_ms() + LAUNCH_GRACE_S * 1000;
        signal_all(ranks, SIGTERM);
    }
}

static void reap(struct ranks *ranks)
{
    int status;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
        note_end(ranks, pid, status);
}

static void watch(struct ranks *ranks, int signals)
{
    while (ranks->alive > 0) {
        int timeout_ms = -1;
        if (ranks->deadline_ms > 0) {
            int64_t left_ms = ranks->deadline_ms - clock_monotonic_ms();
            timeout_ms = left_ms > 0 ? (int)left_ms : 100;
            if (left_ms <= 0)
                signal_all(ranks, SIGKILL);
        }
        struct pollfd fd = {.fd = signals, .events = POLLIN};
        struct signalfd_siginfo info;
        if (poll(&fd, 1, timeout_ms) > 0 && read(signals, &info, sizeof info) == sizeof info &&
            info.ssi_signo != SIGCHLD)
            signal_all(ranks, (int)info.ssi_signo);
        reap(ranks);
    }
}

int launch_local_ranks(const struct topology *topology, char *const *argv, int *ret_exit_code,
                       struct error *err)
{
    sigset_t watched, before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGUSR1);
    sigprocmask(SIG_BLOCK, &watched, &before);
    auto_close int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    if (signals < 0) {
        error_errno(err, errno, "signalfd");
        sigprocmask(SIG_SETMASK, &before, NULL);
        return -1;
    }
    auto_free pid_t *pids = xcalloc((size_t)topology->local_size, sizeof *pids);
    struct ranks ranks = {.pids = pids, .count = topology->local_size};
    int result = start_ranks(topology, argv, &before, &ranks, err);
    if (result)
        signal_all(&ranks, SIGKILL);
    watch(&ranks, signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit_code = ranks.exit_code;
    return result;
}
