#include "agent/launch/stop.h"

#include "base/exit_code.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;

static volatile sig_atomic_t is_by_others;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    stop_signal = number;
    if (info->si_pid != getppid())
        is_by_others = 1;
}

static void end_at_once(int number)
{
    _exit(128 + number);
}

void stop_end_at_once(void)
{
    const struct sigaction action = {.sa_handler = end_at_once};
    if (getpid() != 1)
        return;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void stop_install_handlers(void)
{
    /* SIGTERM is what the kubelet sends, SIGUSR1 the usual choice for Slurm's --signal. The handler
     * only notes it: the step at hand is finished first. */
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

bool stop_requested(void *ctx)
{
    (void)ctx;
    return stop_signal != 0;
}

bool stop_requested_by_others(void)
{
    return is_by_others != 0;
}

int stop_exit_code(const struct error *err)
{
    bool interrupted = err->code == ERR_CANCELLED && stop_signal == SIGINT;
    return interrupted ? 128 + SIGINT : exit_code_of(err->code);
}

void stop_await_first_rank(void)
{
    const struct timespec most = {.tv_sec = 5};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    /* Blocked before the look: a signal between the look and the wait would be missed, and all of
     * the time be waited. */
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!stop_signal)
        sigtimedwait(&set, NULL, &most);
}
