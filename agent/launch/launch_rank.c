#include "agent/launch/launch_rank.h"

#include "agent/launch/rank_memory.h"
#include "agent/launch/rank_note.h"
#include "base/contract.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Runs in the child and does not return. */
static void exec_rank(const struct launch_rank_options *options, const int fds[2], int heartbeat,
                      int words, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(EXIT_RETRYABLE);
    const struct topology *t = options->launch->topology;
    launch_environment_set(t, options->identity, &options->position);
    heartbeat_set_inheritable(heartbeat);
    last_words_set_inheritable(words);
    rank_memory_set_inheritable(options->memory);
    rank_note_set_inheritable(options->note);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            dup2(fds[i], i + 1);
    sigprocmask(SIG_SETMASK, options->mask, NULL);
    execv("/proc/self/exe", options->launch->argv);
    dprintf(STDERR_FILENO, "shoal-agent: cannot start rank %d again\n",
            t->rank + options->position.local_rank);
    _exit(EXIT_FAILED);
}

int launch_rank_start(const struct launch_rank_options *options, struct local_rank *rank,
                      struct launch_stream ret_streams[2], struct error *err)
{
    const struct launch_position *at = &options->position;
    int fds[2] = {-1, -1};
    auto_close int heartbeat = -1, words = -1;
    pid_t parent = getpid(), pid = -1;
    int result = launch_output_open(&options->launch->output, at->attempt, at->local_rank,
                                    &rank->tail, ret_streams, fds, err);
    if (result == 0)
        result = heartbeat_open(&rank->heartbeat, &heartbeat, err);
    if (result == 0)
        result = last_words_open(&rank->words, &words, err);
    if (result == 0) {
        pid = fork();
        if (pid == 0)
            exec_rank(options, fds, heartbeat, words, parent);
        if (pid < 0)
            result = error_errno(err, errno, "start local rank %d", at->local_rank);
    }
    for (int s = 0; s < 2; s++)
        if (fds[s] >= 0)
            close(fds[s]);
    if (result == 0) {
        rank->pid = pid;
    } else {
        last_words_take(rank->words, &rank->exit.words);
        rank->words = -1;
    }
    return result;
}
