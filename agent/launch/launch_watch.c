#include "agent/launch/launch_internal.h"
#include "agent/launch/rank_note.h"
#include "agent/launch/stopped_note.h"
#include "base/clock.h"
#include "base/str.h"

#include <signal.h>
#include <string.h>

static void kill_silent(struct round *round, int i)
{
    struct local_rank *rank = &round->ranks[i];
    rank->exit.is_stuck = true;
    memcpy(rank->exit.doing, rank->heartbeat.doing, sizeof rank->exit.doing);
    kill(rank->pid, SIGKILL);
}

/* A rank that is killed already is on its way: it is not counted as stopped. */
static bool may_end_stopped(const struct round *round)
{
    const struct launch_options *options = round->options;
    struct stopped_ranks_view view = {
        .elsewhere = round->place.world_size - round->count,
        .restarts_left = options->max_restarts - round->budget.spent,
        .is_ending = round->exit_code != 0 || round->stop_signal,
        .hang_is_restart = options->stopped_most_ms > 0,
    };
    for (int i = 0; i < round->count; i++) {
        const struct local_rank *rank = &round->ranks[i];
        view.running += rank->pid > 0;
        view.stopped += rank->pid > 0 && rank->is_stopped && !rank->exit.is_stuck;
    }
    return stopped_ranks_may_end(&view);
}

/* For the rank that takes its place. One of the pod's is enough: all stood still together. */
static void note_stopped(const struct round *round, int i)
{
    auto_str struct str report, text;
    str_init(&report, RANK_NOTE_BYTES);
    str_init(&text, RANK_NOTE_BYTES - 1);
    rank_note_read(round->notes[i], RANK_NOTE_REPORT, &report);
    struct stopped_note note = {.rank = round->ranks[i].exit.rank, .report = str_text(&report)};
    clock_format_rfc3339(clock_now_ms(), note.time, sizeof note.time);
    stopped_note_write(&note, &text);
    rank_note_write(round->notes[i], RANK_NOTE_STOPPED, str_text(&text));
}

static int64_t kill_stopped(struct round *round, int64_t now_ms)
{
    bool are_stopped = may_end_stopped(round);
    bool is_noted = false;
    if (stopped_ranks_look(&round->stopped, are_stopped, now_ms, round->options->stopped_most_ms))
        for (int i = 0; i < round->count; i++) {
            if (round->ranks[i].pid == 0)
                continue;
            launch_print_stopped(round, i);
            if (!is_noted)
                note_stopped(round, i);
            is_noted = true;
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
