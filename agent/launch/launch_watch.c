#include "agent/launch/launch_internal.h"

#include <signal.h>
#include <string.h>

static void kill_silent(struct round *round, int i)
{
    struct local_rank *rank = &round->ranks[i];
    rank->exit.is_stuck = true;
    memcpy(rank->exit.doing, rank->heartbeat.doing, sizeof rank->exit.doing);
    kill(rank->pid, SIGKILL);
}

/* Whether all ranks that run are stopped, and ranks of other pods wait for them, which would all
 * start again. Who is to end, or follows a failure, is ended in time anyway. */
static bool all_are_stopped(const struct round *round)
{
    const struct launch_options *options = round->options;
    bool is_missed = round->place.world_size > round->count &&
                     round->budget.spent < options->max_restarts && round->exit_code == 0 &&
                     !round->stop_signal;
    for (int i = 0; i < round->count; i++)
        if (round->ranks[i].pid > 0 &&
            (!round->ranks[i].is_stopped || round->ranks[i].exit.is_stuck))
            return false;
    return is_missed && options->stopped_most_ms > 0 && round->alive > 0;
}

static int64_t kill_stopped(struct round *round, int64_t now_ms)
{
    bool are_stopped = all_are_stopped(round);
    if (stopped_ranks_look(&round->stopped, are_stopped, now_ms, round->options->stopped_most_ms))
        for (int i = 0; i < round->count; i++) {
            if (round->ranks[i].pid == 0)
                continue;
            launch_print_stopped(round, i);
            kill_silent(round, i);
        }
    return are_stopped ? now_ms + STOPPED_RANKS_LOOK_MS : INT64_MAX;
}

int64_t launch_kill_stuck(struct round *round, int64_t now_ms)
{
    int64_t next_ms = kill_stopped(round, now_ms);
    for (int i = 0; i < round->count; i++) {
        struct local_rank *rank = &round->ranks[i];
        if (rank->pid > 0 && !rank->exit.is_stuck && now_ms >= rank->heartbeat.due_ms) {
            launch_print_stuck(round, i);
            kill_silent(round, i);
        }
        if (rank->pid > 0 && !rank->exit.is_stuck && rank->heartbeat.due_ms < next_ms)
            next_ms = rank->heartbeat.due_ms;
    }
    return next_ms;
}
