#include "agent/launch/launch.h"

#include "agent/launch/launch_rank.h"
#include "agent/launch/rank_memory.h"
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

struct round {
    const struct launch_options *options;
    struct launch_identity identity;
    int attempt;
    int port;                      /* MASTER_PORT */
    struct local_rank *ranks;      /* [local_size] */
    int *memory;                   /* [local_size], which outlive the ranks; 0: none */
    struct launch_stream *streams; /* [2 local_size] */
    struct pollfd *fds; /* [1 + 3 local_size]: the signals', the streams', the heartbeats' */
    int count, alive;
    int exit_code;          /* of the root cause; 0: no rank has failed yet */
    struct rank_exit cause; /* if exit_code is not 0 */
    int64_t cause_ms;       /* when it failed; wall clock */
    int64_t deadline_ms;    /* when the ranks that are left are killed; 0: no rank has failed yet */
    bool is_killed;         /* and they were */
    bool is_stopped;        /* a signal asked for the end */
};

static void signal_all(const struct round *round, int number)
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
                     .max_restarts = round->options->max_restarts},
        .memory = round->memory[i],
        .mask = mask,
    };
    int result = launch_rank_start(&options, &round->ranks[i], &round->streams[2 * i], err);
    round->alive += result == 0;
    return result;
}

/* ---- exits of ranks ---- */

/* The rank's exit becomes the round's, unless the round has a root cause already. A rank that only
 * lost a peer may exit first, while the root cause is still closing its files: so a consequence
 * gives way to a later exit with a reason of its own. The first failure ends the other ranks. */
static void take_root_cause(struct round *round, const struct rank_exit *rank)
{
    bool is_first = round->exit_code == 0;
    if (!is_first && (rank_exit_severity(&round->cause) != CONSEQUENCE ||
                      rank_exit_severity(rank) == CONSEQUENCE))
        return;
    round->exit_code = rank_exit_code(rank);
    round->cause = *rank;
    round->cause_ms = clock_now_ms();
    if (!is_first)
        return;
    round->deadline_ms = clock_monotonic_ms() + LAUNCH_GRACE_S * 1000;
    signal_all(round, SIGTERM);
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
    }
}

static void reap_ranks(struct round *round)
{
    int status;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
        record_exit(round, pid, status);
    find_root_cause(round);
}

/* Kills ranks whose heartbeat is overdue. Returns when the next one is due. */
static int64_t kill_stuck(struct round *round, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < round->count; i++) {
        struct local_rank *rank = &round->ranks[i];
        if (rank->pid > 0 && !rank->exit.is_stuck && now_ms >= rank->heartbeat.due_ms) {
            fprintf(
                stderr,
                "shoal-agent: rank %d (local rank %d, pid %d) is stuck: it gave no sign of life "
                "for %g s, and is killed\n",
                round->options->topology->rank + i, i, (int)rank->pid,
                (double)rank->heartbeat.wait_ms / 1000);
            rank->exit.is_stuck = true;
            kill(rank->pid, SIGKILL);
        }
        if (rank->pid > 0 && !rank->exit.is_stuck && rank->heartbeat.due_ms < next_ms)
            next_ms = rank->heartbeat.due_ms;
    }
    return next_ms;
}

/* ---- a round ---- */

static void forward_signal(struct round *round, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGCHLD)
        return;
    round->is_stopped |= info.ssi_signo != SIGUSR1;
    signal_all(round, (int)info.ssi_signo);
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

/* Waits for the next event, at most until `until_ms`. */
static void wait_event(struct round *round, int signals, int64_t until_ms)
{
    int64_t left_ms = until_ms - clock_monotonic_ms();
    int timeout_ms = left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    nfds_t count = 0;
    add_poll(round, signals, &count);
    for (int i = 0; i < 2 * round->count; i++)
        add_poll(round, round->streams[i].pipe, &count);
    for (int i = 0; i < round->count; i++)
        add_poll(round, round->ranks[i].heartbeat.pipe, &count);
    if (poll(round->fds, count, timeout_ms) > 0 && round->fds[0].revents)
        forward_signal(round, signals);
    read_pipes(round); /* also after a timeout: a heartbeat that is in the pipe came in time */
}

static void wait_for_ranks(struct round *round, int signals)
{
    while (round->alive > 0) {
        int64_t now_ms = clock_monotonic_ms(), next_ms = kill_stuck(round, now_ms);
        if (round->deadline_ms > 0 && now_ms >= round->deadline_ms) {
            signal_all(round, SIGKILL);
            round->is_killed = true;
            next_ms = now_ms + 100;
        } else if (round->deadline_ms > 0 && round->deadline_ms < next_ms) {
            next_ms = round->deadline_ms;
        }
        wait_event(round, signals, next_ms);
        reap_ranks(round);
    }
    read_pipes(round);
    for (int i = 0; i < 2 * round->count; i++)
        launch_stream_close(&round->streams[i]);
    for (int i = 0; i < round->count; i++)
        heartbeat_close(&round->ranks[i].heartbeat);
}

/* A free port of this machine below the kernel's range for connections and for bind(0) (32768 and
 * up, net.ipv4.ip_local_port_range): no other process is given it by accident before rank 0
 * listens. */
static int free_port(int *ret_port, struct error *err)
{
    enum { FIRST = 10000, COUNT = 10000 };
    uint16_t start = 0;
    int result = -1;
    if (getrandom(&start, sizeof start, 0) != sizeof start)
        return error_errno(err, errno, "getrandom");
    for (int i = 0; i < COUNT && result < 0; i++) {
        auto_close int fd = -1;
        *ret_port = FIRST + (start + i) % COUNT;
        result = listen_tcp("127.0.0.1", *ret_port, &fd, err);
    }
    return result;
}

static int run_round(struct round *round, int signals, const sigset_t *mask, struct error *err)
{
    const struct topology *t = round->options->topology;
    round->port = t->port;
    int result = t->port > 0 ? 0 : free_port(&round->port, err);
    round->exit_code = round->alive = 0;
    round->deadline_ms = 0;
    round->is_killed = false;
    if (round->options->names_endpoint)
        fprintf(stderr, "  master_addr=%s\n  master_port=%d\n", t->host, round->port);
    for (int i = 0; i < round->count; i++) {
        round->ranks[i] = (struct local_rank){.heartbeat = {.pipe = -1, .due_ms = INT64_MAX},
                                              .words = -1,
                                              .exit = {.rank = t->rank + i, .local_rank = i}};
        for (int s = 0; s < 2; s++)
            round->streams[2 * i + s] = (struct launch_stream){.pipe = -1, .file = -1};
    }
    for (int i = 0; i < round->count && result == 0; i++)
        result = start_rank(round, i, mask, err);
    if (result)
        signal_all(round, SIGKILL);
    wait_for_ranks(round, signals);
    return result;
}

/* ---- the end of a round ---- */

static bool should_restart(const struct round *round)
{
    return round->exit_code != 0 && round->exit_code != EXIT_CONFIG && !round->is_stopped &&
           round->attempt < round->options->max_restarts && !rank_exit_would_repeat(&round->cause);
}

/* The host, which in a pod has the pod's name; and what the pod's variables say beyond that. */
static void name_place(struct str *out)
{
    char host[256] = "";
    const char *pod = getenv("POD_NAME"), *node = getenv("NODE_NAME");
    gethostname(host, sizeof host - 1);
    str_add(out, host);
    if (pod && pod[0] && strcmp(pod, host) != 0)
        str_printf(out, " (pod %s)", pod);
    if (node && node[0] && strcmp(node, host) != 0)
        str_printf(out, " (node %s)", node);
}

static void print_failure(const struct round *round)
{
    char when[40];
    auto_str struct str place, line;
    str_init(&place, 1024);
    str_init(&line, 4096);
    name_place(&place);
    clock_format_rfc3339(round->cause_ms, when, sizeof when);
    rank_exit_describe(&round->cause, str_text(&place), when, &line);
    fprintf(stderr, "shoal-agent: %s\n", str_text(&line));
}

/* The cause is told where it was. Where a rank only lost a peer, another launcher tells it. */
static void print_end(const struct round *round, bool restarts)
{
    const struct launch_options *options = round->options;
    enum exit_severity severity = rank_exit_severity(&round->cause);
    if (round->exit_code == 0 || round->is_stopped)
        return;
    auto_str struct str loss;
    str_init(&loss, 4096);
    if (severity == CONSEQUENCE && restarts)
        rank_exit_describe_loss(&round->cause, &loss);
    else if (options->is_verbose || severity == UNREPORTED)
        print_failure(round);
    if (restarts)
        fprintf(stderr, "shoal-agent: %s%sall local ranks start again, %d of %d times\n",
                str_text(&loss), loss.length ? ": " : "", round->attempt + 1,
                options->max_restarts);
    else if (options->max_restarts > 0 && round->attempt == options->max_restarts)
        fprintf(stderr, "shoal-agent: no restart is left of %d: ends with exit code %d\n",
                options->max_restarts, round->exit_code);
}

/* Waits restart_delay_s. Whether to go on then: a signal may ask for the end meanwhile. */
static bool pause_before_restart(struct round *round, int signals)
{
    int64_t until_ms = clock_monotonic_ms() + (int64_t)(round->options->restart_delay_s * 1000);
    while (!round->is_stopped && clock_monotonic_ms() < until_ms)
        wait_event(round, signals, until_ms);
    return !round->is_stopped;
}

/* Whether another round follows this one. */
static bool begin_restart(struct round *round, int signals)
{
    bool restarts = should_restart(round);
    print_end(round, restarts);
    round->attempt += restarts;
    return restarts && pause_before_restart(round, signals);
}

static void close_memory(const struct round *round)
{
    for (int i = 0; i < round->count; i++)
        if (round->memory[i] > 0)
            close(take_fd(round->memory[i]));
}

/* Only a launcher that starts ranks again has use for what they leave behind. They train without
 * as well: one that lacks it is enough for all to do so. */
static void open_memory(struct round *round)
{
    struct error err;
    for (int i = 0; i < round->count && round->options->max_restarts > 0; i++)
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
    auto_free struct launch_stream *streams = xcalloc(2 * count, sizeof *streams);
    auto_free struct pollfd *fds = xcalloc(1 + 3 * count, sizeof *fds);
    struct round round = {.options = options,
                          .ranks = ranks,
                          .memory = memory,
                          .streams = streams,
                          .fds = fds,
                          .count = (int)count};
    launch_identity_choose(options->topology, &round.identity);
    open_memory(&round);
    int result = 0;
    while (result == 0 && (result = run_round(&round, signals, &before, err)) == 0 &&
           begin_restart(&round, signals))
        ;
    close_memory(&round);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit_code = round.exit_code;
    return result;
}
