#include "agent/launch/launch.h"

#include "agent/launch/heartbeat.h"
#include "agent/launch/rank_memory.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/mem.h"
#include "kernels/device.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct local_rank {
    pid_t pid;   /* 0: ended */
    pid_t ended; /* its pid, from its exit to find_root_cause(); else 0 */
    int status;  /* of its exit, as waitpid() has it */
    struct heartbeat_listener heartbeat;
    bool is_stuck; /* its heartbeats stopped, so it was killed */
};

/* What a rank's exit says about the cause of the round's end; more is closer to it. */
enum exit_severity {
    CONSEQUENCE, /* it lost a peer or was asked to end: another rank failed first */
    REPORTED,    /* it failed, and has logged why */
    UNREPORTED,  /* a signal killed it before it could log anything */
};

struct round {
    const struct launch_options *options;
    char run_id[sizeof((struct topology *)NULL)->run_id]; /* "": not known */
    char secret[TOPOLOGY_SECRET_BYTES];                   /* "": none */
    int attempt;
    int port;                      /* MASTER_PORT */
    struct local_rank *ranks;      /* [local_size] */
    int *memory;                   /* [local_size], which outlive the ranks; 0: none */
    struct launch_stream *streams; /* [2 local_size] */
    struct pollfd *fds; /* [1 + 3 local_size]: the signals', the streams', the heartbeats' */
    int count, alive;
    int exit_code;               /* of the root cause; 0: no rank has failed yet */
    enum exit_severity severity; /* of the root cause */
    int64_t deadline_ms; /* when the ranks that are left are killed; 0: no rank has failed yet */
    bool is_killed;      /* and they were */
    bool is_stopped;     /* a signal asked for the end */
};

static void set_env_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* The run's id is the topology's, or a new random one. A run that began before this process and has
 * no id gets none: other launchers of the run would draw other numbers. */
static void choose_run_id(struct round *round)
{
    const struct topology *t = round->options->topology;
    uint64_t number = 0;
    snprintf(round->run_id, sizeof round->run_id, "%s", t->run_id);
    if (!t->run_id[0] && t->restart_count == 0 &&
        getrandom(&number, sizeof number, 0) == sizeof number)
        snprintf(round->run_id, sizeof round->run_id, "%016" PRIx64, number);
}

/* On one node the launcher draws a secret that nobody else can know. With several nodes the secret
 * must be the one in the topology: ranks of other nodes do not know what this launcher draws. */
static void choose_secret(struct round *round)
{
    const struct topology *t = round->options->topology;
    uint64_t number[2];
    snprintf(round->secret, sizeof round->secret, "%s", t->secret);
    if (t->nodes == 1 && !t->is_secret_set && getrandom(number, sizeof number, 0) == sizeof number)
        snprintf(round->secret, sizeof round->secret, "%016" PRIx64 "%016" PRIx64, number[0],
                 number[1]);
}

static void set_environment(const struct round *round, int local_rank)
{
    const struct topology *t = round->options->topology;
    set_env_number(ENV_LOCAL_RANK, local_rank);
    set_env_number(ENV_LOCAL_WORLD_SIZE, t->local_size);
    set_env_number(ENV_RANK, t->rank + local_rank);
    set_env_number(ENV_WORLD_SIZE, t->world_size);
    set_env_number(ENV_RESTART_COUNT, t->restart_count + round->attempt);
    setenv(ENV_RUN_ID, round->run_id, 1);
    setenv(ENV_RUN_SECRET, round->secret, 1);
    setenv(ENV_MASTER_ADDR, t->host, 1);
    set_env_number(ENV_MASTER_PORT, round->port);
    /* torchrun's workers have these, too. */
    set_env_number("GROUP_RANK", t->node_rank);
    set_env_number("GROUP_WORLD_SIZE", t->nodes);
    set_env_number("ROLE_RANK", t->rank + local_rank);
    set_env_number("ROLE_WORLD_SIZE", t->world_size);
    set_env_number("TORCHELASTIC_RESTART_COUNT", round->attempt);
    set_env_number("TORCHELASTIC_MAX_RESTARTS", round->options->max_restarts);
    setenv("TORCHELASTIC_RUN_ID", t->job_id[0] ? t->job_id : "none", 1);
}

/* Runs in the child and does not return. */
static void exec_rank(const struct round *round, int local_rank, const int fds[2], int heartbeat,
                      const sigset_t *mask, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(EXIT_RETRYABLE);
    set_environment(round, local_rank);
    heartbeat_set_inheritable(heartbeat);
    rank_memory_set_inheritable(round->memory[local_rank]);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            dup2(fds[i], i + 1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv("/proc/self/exe", round->options->argv);
    dprintf(STDERR_FILENO, "shoal-agent: cannot start rank %d again\n",
            round->options->topology->rank + local_rank);
    _exit(EXIT_FAILED);
}

static void signal_all(const struct round *round, int number)
{
    for (int i = 0; i < round->count; i++)
        if (round->ranks[i].pid > 0)
            kill(round->ranks[i].pid, number);
}

static int start_rank(struct round *round, int i, const sigset_t *mask, struct error *err)
{
    int fds[2] = {-1, -1};
    auto_close int heartbeat = -1;
    pid_t parent = getpid(), pid = -1;
    int result = launch_output_open(&round->options->output, round->attempt, i,
                                    &round->streams[2 * i], fds, err);
    if (result == 0)
        result = heartbeat_open(&round->ranks[i].heartbeat, &heartbeat, err);
    if (result == 0) {
        pid = fork();
        if (pid == 0)
            exec_rank(round, i, fds, heartbeat, mask, parent);
        if (pid < 0)
            result = error_errno(err, errno, "start local rank %d", i);
    }
    for (int s = 0; s < 2; s++)
        if (fds[s] >= 0)
            close(fds[s]);
    if (result == 0) {
        round->ranks[i].pid = pid;
        round->alive++;
    }
    return result;
}

/* ---- exits of ranks ---- */

static void report(const struct round *round, int local_rank, pid_t pid, int status)
{
    char host[256] = "", when[40], how[32];
    gethostname(host, sizeof host - 1);
    clock_format_rfc3339(clock_now_ms(), when, sizeof when);
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    fprintf(stderr, "shoal-agent: rank %d (local rank %d, pid %d) on %s failed at %s: %s\n",
            round->options->topology->rank + local_rank, local_rank, (int)pid, host, when, how);
}

static int rank_exit_code(const struct local_rank *rank)
{
    return rank->is_stuck              ? EXIT_RETRYABLE
           : WIFSIGNALED(rank->status) ? 128 + WTERMSIG(rank->status)
                                       : WEXITSTATUS(rank->status);
}

/* A rank that exits by itself has logged why. A rank that a signal killed could not. */
static bool is_unreported(const struct local_rank *rank)
{
    return WIFSIGNALED(rank->status) && !rank->is_stuck;
}

static enum exit_severity severity_of(const struct round *round, const struct local_rank *rank)
{
    int code = rank_exit_code(rank);
    if (code == EXIT_TERMINATED || (code == EXIT_RETRYABLE && !rank->is_stuck) ||
        (code == 128 + SIGKILL && round->is_killed))
        return CONSEQUENCE;
    return is_unreported(rank) ? UNREPORTED : REPORTED;
}

/* The rank's exit becomes the round's, unless the round has a root cause already. A rank that only
 * lost a peer may exit first, while the root cause is still closing its files: so a consequence
 * gives way to a later exit with a reason of its own. The first failure ends the other ranks. */
static void report_root_cause(struct round *round, int local_rank)
{
    const struct local_rank *rank = &round->ranks[local_rank];
    enum exit_severity severity = severity_of(round, rank);
    bool is_first = round->exit_code == 0;
    if (!is_first && (round->severity != CONSEQUENCE || severity == CONSEQUENCE))
        return;
    round->exit_code = rank_exit_code(rank);
    round->severity = severity;
    if ((round->options->is_verbose || is_unreported(rank)) && !round->is_stopped)
        report(round, local_rank, rank->ended, rank->status);
    if (!is_first)
        return;
    round->deadline_ms = clock_monotonic_ms() + LAUNCH_GRACE_S * 1000;
    signal_all(round, SIGTERM);
}

/* Picks the most severe of the exits since the last call. Several ranks may have exited by then:
 * one that a signal killed takes its peers with it within milliseconds. */
static void find_root_cause(struct round *round)
{
    int worst = -1;
    for (int i = 0; i < round->count; i++) {
        const struct local_rank *rank = &round->ranks[i];
        if (rank->ended && rank_exit_code(rank) != 0 &&
            (worst < 0 || severity_of(round, rank) > severity_of(round, &round->ranks[worst])))
            worst = i;
    }
    if (worst >= 0)
        report_root_cause(round, worst);
    for (int i = 0; i < round->count; i++)
        round->ranks[i].ended = 0;
}

static void record_exit(struct round *round, pid_t pid, int status)
{
    for (int i = 0; i < round->count; i++) {
        struct local_rank *rank = &round->ranks[i];
        if (rank->pid != pid)
            continue;
        rank->pid = 0;
        rank->ended = pid;
        rank->status = status;
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
        if (rank->pid > 0 && !rank->is_stuck && now_ms >= rank->heartbeat.due_ms) {
            fprintf(
                stderr,
                "shoal-agent: rank %d (local rank %d, pid %d) is stuck: it gave no sign of life "
                "for %g s, and is killed\n",
                round->options->topology->rank + i, i, (int)rank->pid,
                (double)rank->heartbeat.wait_ms / 1000);
            rank->is_stuck = true;
            kill(rank->pid, SIGKILL);
        }
        if (rank->pid > 0 && !rank->is_stuck && rank->heartbeat.due_ms < next_ms)
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
        round->ranks[i] = (struct local_rank){.heartbeat = {.pipe = -1, .due_ms = INT64_MAX}};
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

/* Whether another round follows this one. Waits restart_delay_s before it says so. */
static bool should_restart(struct round *round, int signals)
{
    const struct launch_options *options = round->options;
    if (round->exit_code == 0 || round->exit_code == EXIT_CONFIG || round->is_stopped ||
        round->attempt >= options->max_restarts)
        return false;
    round->attempt++;
    if (options->is_verbose)
        fprintf(stderr, "shoal-agent: all local ranks start again, %d of %d times\n",
                round->attempt, options->max_restarts);
    int64_t until_ms = clock_monotonic_ms() + (int64_t)(options->restart_delay_s * 1000);
    while (!round->is_stopped && clock_monotonic_ms() < until_ms)
        wait_event(round, signals, until_ms);
    return !round->is_stopped;
}

/* Only a launcher that starts ranks again has use for what they leave behind. */
static int open_memory(struct round *round, struct error *err)
{
    int result = 0;
    for (int i = 0; i < round->count && result == 0 && round->options->max_restarts > 0; i++)
        result = rank_memory_open(i, &round->memory[i], err);
    return result;
}

static void close_memory(const struct round *round)
{
    for (int i = 0; i < round->count; i++)
        if (round->memory[i] > 0)
            close(round->memory[i]);
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
    choose_run_id(&round);
    choose_secret(&round);
    int result = open_memory(&round, err);
    while (result == 0 && (result = run_round(&round, signals, &before, err)) == 0 &&
           should_restart(&round, signals))
        ;
    close_memory(&round);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit_code = round.exit_code;
    return result;
}
