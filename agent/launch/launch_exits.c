#include "agent/launch/launch_internal.h"
#include "agent/launch/rank_note.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/str.h"

#include <signal.h>
#include <sys/wait.h>

/* The rank's exit becomes the round's, unless the round has a root cause already. A rank that only
 * lost a peer may exit first, while the root cause is still closing its files: so a consequence
 * gives way to a later exit with a reason of its own, and each to bad hardware. The first failure
 * ends the other ranks. */
static void take_root_cause(struct round *round, const struct rank_exit *rank)
{
    bool is_first = round->exit_code == 0;
    bool is_hardware = rank_exit_severity(rank) == BAD_HARDWARE;
    if (!is_first && !is_hardware &&
        (rank_exit_severity(&round->cause) != CONSEQUENCE ||
         rank_exit_severity(rank) == CONSEQUENCE))
        return;
    round->exit_code = rank_exit_code(rank);
    round->cause = *rank;
    round->cause_ms = clock_now_ms();
    if (!is_first)
        return;
    round->fails_asked = round->stop_signal != 0;
    round->deadline_ms = clock_monotonic_ms() + LAUNCH_GRACE_S * 1000;
    launch_signal_all(round, SIGTERM);
}

/* Picks the most severe of the exits since the last call. Several ranks may have exited by then:
 * one that a signal killed takes its peers with it within milliseconds. */
static void find_root_cause(struct round *round)
{
    const struct rank_exit *worst = NULL;
    for (int i = 0; i < round->count; i++) {
        const struct rank_exit *rank = &round->ranks[i].exit;
        if (rank->pid && rank_exit_code(rank) != 0 &&
            (!worst || rank_exit_severity(rank) > rank_exit_severity(worst)))
            worst = rank;
    }
    if (worst)
        take_root_cause(round, worst);
    for (int i = 0; i < round->count; i++)
        round->ranks[i].exit.pid = 0;
}

static void record_exit(struct round *round, pid_t pid, int status)
{
    for (int i = 0; i < round->count; i++) {
        struct local_rank *rank = &round->ranks[i];
        if (rank->pid != pid)
            continue;
        rank->pid = 0;
        rank->exit.pid = pid;
        rank->exit.status = status;
        rank->exit.is_too_slow = round->is_killed;
        last_words_take(rank->words, &rank->exit.words);
        rank->words = -1;
        round->alive--;
        round->have_met |= rank->exit.words.has_met;
        if (round->new_launchers < rank->exit.words.new_launchers)
            round->new_launchers = rank->exit.words.new_launchers;
        stop_signs_add(&round->stop_signs, &rank->exit);
    }
}

static void record_stop(struct round *round, pid_t pid, bool is_stopped)
{
    for (int i = 0; i < round->count; i++)
        if (round->ranks[i].pid == pid)
            round->ranks[i].is_stopped = is_stopped;
}

void launch_reap_ranks(struct round *round)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (WIFSTOPPED(status) || WIFCONTINUED(status))
            record_stop(round, pid, WIFSTOPPED(status));
        else
            record_exit(round, pid, status);
    }
    find_root_cause(round);
}

/* Of ranks that a signal asked to end, one may be found to have lost its peer before that peer is
 * found to have ended: the kernel closes connections first. */
static void settle_exit_code(struct round *round)
{
    if (round->fails_asked && round->exit_code == EXIT_RETRYABLE &&
        rank_exit_severity(&round->cause) == CONSEQUENCE)
        round->exit_code = 128 + round->stop_signal;
}

/* Where the round has ended, if that was here. */
static void note_end(struct round *round)
{
    auto_str struct str where;
    str_init(&where, RANK_NOTE_BYTES);
    if (round->exit_code == 0 || rank_exit_severity(&round->cause) == CONSEQUENCE)
        return;
    rank_note_read(round->notes[round->cause.local_rank], RANK_NOTE_STEP, &where);
    repeated_end_add(&round->ends, str_text(&where));
}

void launch_settle_exit(struct round *round)
{
    settle_exit_code(round);
    note_end(round);
}
