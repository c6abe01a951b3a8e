#include "agent/launch/launch.h"

#include "agent/launch/launch_internal.h"
#include "agent/launch/rank_memory.h"
#include "agent/launch/rank_note.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/device.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

void launch_signal_all(const struct round *round, int number)
{
    for (int i = 0; i < round->count; i++)
        if (round->ranks[i].pid > 0)
            kill(round->ranks[i].pid, number);
}

static int start_rank(struct round *round, int i, const sigset_t *mask, struct error *err)
{
    const struct launch_rank_options options = {
        .launch = round->options,
        .identity = &round->identity,
        .position = {.local_rank = i,
                     .port = round->port,
                     .attempt = round->attempt,
                     .spent = round->budget.spent,
                     .max_restarts = round->options->max_restarts,
                     .slots = round->nodes.slots,
                     .is_new = !round->budget.has_asked,
                     .rounds_met = round->nodes.meeting ? 0 : round->budget.rounds_met},
        .memory = round->memory[i],
        .note = round->notes[i],
        .mask = mask,
    };
    rank_note_write(options.note, RANK_NOTE_STEP, "");
    int result = launch_rank_start(&options, &round->ranks[i], &round->streams[2 * i], err);
    round->alive += result == 0;
    return result;
}

/* ---- exits of ranks ---- */

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

static void reap_ranks(struct round *round)
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

/* ---- a round ---- */

static void forward_signal(struct round *round, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGCHLD)
        return;
    if (info.ssi_signo == SIGUSR1)
        round->stop_signs.here = true;
    else
        round->stop_signal = (int)info.ssi_signo;
    /* For stopped ranks, before the signal: it may end a rank, and a rank that ends may stop itself
     * for a tracer (LeakSanitizer's, a debugger's), whose SIGSTOP a SIGCONT would take back. */
    launch_signal_all(round, SIGCONT);
    launch_signal_all(round, (int)info.ssi_signo);
}

static void read_pipes(struct round *round)
{
    for (int i = 0; i < 2 * round->count; i++)
        launch_stream_read(&round->streams[i]);
    for (int i = 0; i < round->count; i++)
        heartbeat_receive(&round->ranks[i].heartbeat, clock_monotonic_ms());
}

/* poll() fails with EINVAL on more entries than RLIMIT_NOFILE, closed ones (-1) included: only open
 * ones are listed. */
static void add_poll(struct round *round, int fd, nfds_t *count)
{
    if (fd >= 0)
        round->fds[(*count)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

void launch_wait_event(struct round *round, int signals, int64_t until_ms)
{
    int64_t meeting_ms = INT64_MAX;
    nfds_t count = 0;
    add_poll(round, signals, &count);
    for (int i = 0; i < 2 * round->count; i++)
        count += launch_stream_poll(&round->streams[i], &round->fds[count]);
    for (int i = 0; i < round->count; i++)
        add_poll(round, round->ranks[i].heartbeat.pipe, &count);
    if (round->nodes.meeting)
        count += meeting_polls(round->nodes.meeting, round->fds + count, &meeting_ms);
    until_ms = meeting_ms < until_ms ? meeting_ms : until_ms;
    int64_t left_ms = until_ms - clock_monotonic_ms();
    int timeout_ms = left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    if (poll(round->fds, count, timeout_ms) > 0 && round->fds[0].revents)
        forward_signal(round, signals);
    read_pipes(round); /* also after a timeout: a heartbeat that is in the pipe came in time */
    launch_nodes_handle(round);
}

static void wait_for_ranks(struct round *round, int signals)
{
    while (round->alive > 0) {
        int64_t now_ms = clock_monotonic_ms(), next_ms = launch_kill_stuck(round, now_ms);
        if (round->deadline_ms > 0 && now_ms >= round->deadline_ms) {
            launch_signal_all(round, SIGKILL);
            round->is_killed = true;
            next_ms = now_ms + 100;
        } else if (round->deadline_ms > 0 && round->deadline_ms < next_ms) {
            next_ms = round->deadline_ms;
        }
        launch_wait_event(round, signals, next_ms);
        reap_ranks(round);
    }
    read_pipes(round);
    int64_t until_ms = clock_monotonic_ms() + LAUNCH_DRAIN_MS;
    for (int i = 0; i < 2 * round->count; i++)
        launch_stream_close(&round->streams[i], until_ms);
    for (int i = 0; i < round->count; i++)
        heartbeat_close(&round->ranks[i].heartbeat);
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

/* No rank runs, and nothing of one is open. */
static void forget_ranks(struct round *round)
{
    const struct topology *t = round->options->topology;
    for (int i = 0; i < round->count; i++) {
        round->ranks[i] = (struct local_rank){.heartbeat = {.pipe = -1, .due_ms = INT64_MAX},
                                              .words = -1,
                                              .exit = {.rank = t->rank + i, .local_rank = i}};
        for (int s = 0; s < 2; s++)
            round->streams[2 * i + s] = (struct launch_stream){.pipe = -1, .file = -1};
    }
}

static int run_round(struct round *round, int signals, const sigset_t *mask, struct error *err)
{
    const struct topology *t = round->options->topology;
    round->port = t->port;
    int result = t->port > 0 ? 0 : listen_free_port(&round->port, err);
    round->exit_code = round->alive = 0;
    round->deadline_ms = 0;
    round->is_killed = round->have_met = false;
    round->new_launchers = LAST_WORDS_NOT_ASKED;
    round->stop_signs = (struct stop_signs){0};
    round->cause.pid = 0;
    if (round->options->names_endpoint)
        fprintf(stderr, "  master_addr=%s\n  master_port=%d\n", t->host, round->port);
    forget_ranks(round);
    for (int i = 0; i < round->count && result == 0; i++)
        result = start_rank(round, i, mask, err);
    if (result)
        launch_signal_all(round, SIGKILL);
    wait_for_ranks(round, signals);
    settle_exit_code(round);
    note_end(round);
    if (result) /* which the ranks that were killed say nothing of, if there were any */
        round->exit_code = EXIT_FAILED;
    return result;
}

/* ---- the end of a round ---- */

static bool should_restart(const struct round *round)
{
    const struct launch_options *options = round->options;
    bool is_free = launch_is_free(round) && options->max_restarts > 0;
    bool meets_anew = round->nodes.meeting != NULL;
    return round->exit_code != 0 && !round->fails_asked &&
           (meets_anew || is_free || round->budget.spent < options->max_restarts) &&
           !rank_exit_would_repeat(&round->cause, meets_anew);
}

/* Restarts that were for peers whose launchers were lost, as it shows now: no failures of ranks. */
static void take_back_restarts(struct round *round)
{
    int given_back = restart_budget_settle(&round->budget, round->have_met, round->new_launchers);
    if (given_back == 0 || round->exit_code == 0)
        return;
    if (given_back == 1)
        fprintf(stderr, "shoal-agent: a launcher was lost and is back: the restart for it is not "
                        "counted\n");
    else
        fprintf(stderr,
                "shoal-agent: %d launchers were lost and are back: the restarts for them are not "
                "counted\n",
                given_back);
}

bool launch_is_free(const struct round *round)
{
    return !round->nodes.meeting && stop_signs_name_peer(&round->stop_signs, &round->cause);
}

void launch_end_as_asked(struct round *round)
{
    bool would_go_on = !round->nodes.meeting || round->budget.spent < round->options->max_restarts;
    if (round->exit_code == 0 || would_go_on)
        round->exit_code = 128 + round->stop_signal;
}

/* Before ranks start again: waits restart_delay_s. Whether to go on then: a signal may ask for the
 * end meanwhile, or has done so since the failure. */
static bool pause_before_restart(struct round *round, int signals)
{
    int64_t until_ms = clock_monotonic_ms() + (int64_t)(round->options->restart_delay_s * 1000);
    while (!round->stop_signal && clock_monotonic_ms() < until_ms)
        launch_wait_event(round, signals, until_ms);
    if (round->stop_signal)
        launch_end_as_asked(round);
    return !round->stop_signal;
}

/* Whether it spends a restart is known when the others are there. */
static bool go_on_with_others(struct round *round, int signals)
{
    if (rank_exit_severity(&round->cause) != CONSEQUENCE)
        launch_print_failure(round);
    round->attempt++;
    return pause_before_restart(round, signals) && launch_nodes_gather(round, signals);
}

/* Whether another round follows this one. */
static bool begin_restart(struct round *round, int signals)
{
    take_back_restarts(round);
    bool restarts = should_restart(round), spends = restarts && !launch_is_free(round);
    if (round->nodes.meeting && restarts)
        return go_on_with_others(round, signals);
    launch_print_end(round, restarts && !round->stop_signal);
    round->attempt += restarts;
    if (spends)
        restart_budget_spend(&round->budget, rank_exit_severity(&round->cause) == CONSEQUENCE);
    return restarts && pause_before_restart(round, signals);
}

static void close_memory(struct round *round)
{
    for (int i = 0; i < round->count; i++)
        if (round->memory[i] > 0)
            close(take_fd(round->memory[i]));
    for (int i = 0; i < round->count; i++)
        if (round->notes[i] > 0)
            close(take_fd(round->notes[i]));
}

/* Only a launcher that starts ranks again has use for what they leave behind. They train without
 * as well: one that lacks it is enough for all to do so. */
static void open_memory(struct round *round)
{
    struct error err;
    bool needs_memory = round->options->max_restarts > 0 || round->nodes.meeting;
    for (int i = 0; i < round->count && needs_memory; i++)
        round->notes[i] = rank_note_open(i);
    for (int i = 0; i < round->count && needs_memory; i++)
        if (rank_memory_open(i, &round->memory[i], &err)) {
            log_warning("no checkpoints in memory: %s", err.msg);
            close_memory(round);
            return;
        }
}

int launch_count_gpus(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct error ignored;
        int count = device_count_gpus(&ignored);
        _exit(count < UINT8_MAX ? count : UINT8_MAX);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 0;
    return WEXITSTATUS(status);
}

int launch_local_ranks(const struct launch_options *options, int *ret_exit_code, struct error *err)
{
    sigset_t watched, before;
    size_t count = (size_t)options->topology->local_size;
    if (launch_output_check(&options->output, err))
        return -1;
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
    auto_free struct local_rank *ranks = xcalloc(count, sizeof *ranks);
    auto_free int *memory = xcalloc(count, sizeof *memory);
    auto_free int *notes = xcalloc(count, sizeof *notes);
    auto_free struct launch_stream *streams = xcalloc(2 * count, sizeof *streams);
    struct launch_options own = *options;
    struct round round = {.options = &own,
                          .place = *options->topology,
                          .ranks = ranks,
                          .memory = memory,
                          .notes = notes,
                          .streams = streams,
                          .count = (int)count};
    own.topology = &round.place;
    launch_identity_choose(options->topology, &round.identity);
    int result = launch_nodes_open(&round, err);
    size_t polls = round.nodes.meeting ? (size_t)meeting_polls_most(round.nodes.meeting) : 0;
    auto_free struct pollfd *fds = xcalloc(1 + 3 * count + polls, sizeof *fds);
    round.fds = fds;
    open_memory(&round);
    forget_ranks(&round);
    bool goes_on = result == 0 && launch_nodes_gather(&round, signals);
    while (goes_on) {
        result = run_round(&round, signals, &before, err);
        goes_on = result == 0 && begin_restart(&round, signals);
    }
    if (result == 0)
        launch_tell_kubelet(&round);
    close_memory(&round);
    launch_nodes_close(&round);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit_code = round.exit_code;
    return result;
}
