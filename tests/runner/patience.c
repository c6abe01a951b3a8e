/* Runs one test and ends it when it gets nowhere, however slow the machine is:
 *   patience [--quiet S] [--cpu S] [--clock FILE] [--cost FILE] [--spare] COMMAND...
 * --quiet: printed nothing for so long (stdout, a file); --cpu: used so many seconds of processors.
 * 0: no limit. Time is the test's own: a second counts as far as the machine let the test run in it
 * (tree.h), so that a machine that is ten times as busy gives ten times as long. --clock keeps that
 * time, in whole seconds, in a file, for the test's own waits (tests/wait.sh). --cost writes the
 * seconds of processors that it used to a file. --spare: it gets only what processors are left by
 * others. All of the test's processes are its own, whatever their parents and sessions: none
 * outlives it. What it did when it was ended goes to stderr. Exit code: the command's, 128 + its
 * signal, or 124. */
#include "tests/runner/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_MS = 1000, GRACE_S = 10, EXIT_ENDED = 124 };

struct run {
    double quiet_s, cpu_s; /* limits */
    const char *clock_path, *cost_path;
    bool takes_spare;
    pid_t child;
    int signals; /* a signalfd */
    bool has_ended;
    int status;      /* then: waitpid's */
    int stop_signal; /* that we were sent; 0: none */
    struct tree *tree;
    double own_s;   /* the test's own time */
    double heard_s; /* of it, when it last printed something */
    off_t printed;  /* bytes */
    double begin_s;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Of all that it started and that is over. */
static double ended_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/* Where the kernel shares processors among sessions first (sched(7), "The autogroup feature"), it
 * heeds nice(2) only within one. */
static void take_spare(void)
{
    setsid();
    errno = 0;
    if (nice(19) == -1 && errno)
        perror("patience: nice");
    int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* a kernel that knows no such groups */
    if (write(fd, "19", 2) != 2)
        perror("/proc/self/autogroup");
    close(fd);
}

static void start(struct run *r, char **argv)
{
    sigset_t handled;
    sigemptyset(&handled);
    for (const int *s = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *s; s++)
        sigaddset(&handled, *s);
    sigprocmask(SIG_BLOCK, &handled, NULL);
    r->signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    r->begin_s = now_s();
    r->child = fork();
    if (r->child != 0)
        return;
    if (r->takes_spare)
        take_spare();
    else
        setpgid(0, 0);
    signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore Ctrl-C, which some tests send */
    signal(SIGQUIT, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &handled, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "patience: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void reap(struct run *r)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == r->child) {
            r->has_ended = true;
            r->status = status;
        }
}

static void write_clock(const struct run *r)
{
    char text[32];
    if (!r->clock_path)
        return;
    int fd = open(r->clock_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int bytes = snprintf(text, sizeof text, "%.0f\n", r->own_s);
    if (fd < 0 || pwrite(fd, text, (size_t)bytes, 0) != bytes)
        perror(r->clock_path);
    close(fd);
}

/* Waits for the end of a period or for a signal, and lets the test's time go on. */
static void spend_period(struct run *r)
{
    struct signalfd_siginfo info;
    struct stat out;
    double before_s = now_s();
    poll(&(struct pollfd){.fd = r->signals, .events = POLLIN}, 1, PERIOD_MS);
    while (read(r->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            r->stop_signal = (int)info.ssi_signo;
    reap(r);
    double passed_s = now_s() - before_s;
    if (passed_s > PERIOD_MS / 1000.0) /* later than that, we had no processor ourselves */
        passed_s = PERIOD_MS / 1000.0;
    tree_look(r->tree);
    r->own_s += passed_s * tree_share(r->tree);
    write_clock(r);
    if (fstat(STDOUT_FILENO, &out) == 0 && out.st_size != r->printed) {
        r->printed = out.st_size;
        r->heard_s = r->own_s;
    }
}

/* Whether it gets nowhere, and why. */
static bool is_stuck(const struct run *r, char *why, size_t bytes)
{
    double cpu_s = ended_cpu_s() + tree_cpu_s(r->tree);
    if (r->quiet_s > 0 && r->own_s - r->heard_s >= r->quiet_s)
        snprintf(why, bytes, "printed nothing for %.0f s of its own time", r->quiet_s);
    else if (r->cpu_s > 0 && cpu_s >= r->cpu_s)
        snprintf(why, bytes, "used %.0f s of processors", r->cpu_s);
    else
        return false;
    return true;
}

/* Asks the test to end, which may take its time to clean up. */
static void end_politely(struct run *r)
{
    double until_s = r->own_s + GRACE_S;
    kill(-r->child, SIGTERM);
    kill(-r->child, SIGCONT);
    while (!r->has_ended && r->own_s < until_s)
        spend_period(r);
}

static void kill_the_rest(struct run *r)
{
    for (int rounds = 0; rounds < 1000 && tree_look(r->tree) > 0; rounds++) {
        tree_signal(r->tree, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        reap(r);
    }
}

static void tell_cost(const struct run *r)
{
    FILE *file = r->cost_path ? fopen(r->cost_path, "we") : NULL;
    if (!file)
        return;
    fprintf(file, "%.2f\n", ended_cpu_s());
    fclose(file);
}

static bool read_options(struct run *r, int argc, char **argv)
{
    static const struct option options[] = {
        {"quiet", required_argument, NULL, 'q'}, {"cpu", required_argument, NULL, 'p'},
        {"clock", required_argument, NULL, 'c'}, {"cost", required_argument, NULL, 'o'},
        {"spare", no_argument, NULL, 's'},       {0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'q')
            r->quiet_s = atof(optarg);
        else if (option == 'p')
            r->cpu_s = atof(optarg);
        else if (option == 'c')
            r->clock_path = optarg;
        else if (option == 'o')
            r->cost_path = optarg;
        else if (option == 's')
            r->takes_spare = true;
        else
            return false;
    }
    return optind < argc;
}

int main(int argc, char **argv)
{
    struct run run = {.tree = tree_open(getpid())};
    char why[100];
    bool stuck = false;
    if (!read_options(&run, argc, argv)) {
        fprintf(stderr, "usage: patience [--quiet S] [--cpu S] [--clock FILE] [--cost FILE] "
                        "[--spare] COMMAND...\n");
        return 2;
    }
    write_clock(&run);
    start(&run, argv + optind);
    while (!run.has_ended && !stuck && !run.stop_signal) {
        spend_period(&run);
        stuck = !run.has_ended && is_stuck(&run, why, sizeof why);
    }
    if (stuck) {
        fprintf(stderr,
                "patience: ended after %.0f s (%.0f s of its own time): it %s. Its processes:\n",
                now_s() - run.begin_s, run.own_s, why);
        tree_print(run.tree, stderr);
    }
    if (!run.has_ended)
        end_politely(&run);
    kill_the_rest(&run);
    tell_cost(&run);
    tree_close(run.tree);
    if (stuck)
        return EXIT_ENDED;
    if (run.stop_signal)
        return 128 + run.stop_signal;
    return WIFEXITED(run.status) ? WEXITSTATUS(run.status) : 128 + WTERMSIG(run.status);
}
