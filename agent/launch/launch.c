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
    rank_note_write(options.note, RANK_NOTE_REPORT, "");
    int result = launch_rank_start(&options, &round->ranks[i], &round->streams[2 * i], err);
    round->alive += result == 0;
    return result;
}

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
        launch_reap_ranks(round);
    }
    read_pipes(round);
    int64_t until_ms = clock_monotonic_ms() + LAUNCH_DRAIN_MS;
    for (int i = 0; i < 2 * round->count; i++)
        launch_stream_close(&round->streams[i], until_ms);
    for (int i = 0; i < round->count; i++)
        heartbeat_close(&round->ranks[i].heartbeat);
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
    launch_settle_exit(round);
    if (result) /* which the ranks that were killed say nothing of, if there were any */
        round->exit_code = EXIT_FAILED;
    return result;
}

static void close_memory(struct round *round)
{
    for (int i = 0; i < round->count; i++)
        if (round->memory[i] > 0)
            close(take_fd(round->memory[i]));
}

static void close_notes(struct round *round)
{
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
        goes_on = result == 0 && launch_begin_restart(&round, signals);
    }
    if (result == 0)
        launch_tell_kubelet(&round);
    close_memory(&round);
    close_notes(&round);
    launch_nodes_close(&round);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit_code = round.exit_code;
    return result;
}
