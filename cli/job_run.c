#include "cli/job_run.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/agent_image.h"
#include "cli/inbox.h"
#include "cli/job_view.h"
#include "cli/launcher_hint.h"
#include "cli/run_answer.h"
#include "cli/run_pods.h"
#include "operator/apply/apply.h"
#include "operator/job/condition.h"
#include "operator/local/local.h"
#include "operator/reconcile/reconcile.h"

enum {
    PASSES_MAX = 1000,          /* a job that does not converge is a bug */
    FIXED_FDS = 4,              /* children, stop, progress, stdout; then the logs */
    HINT_MAX_BYTES = 4096,      /* more than a manifest's names take */
    STOPPED_PATIENCE_MS = 1000, /* for a reader of stdout that may have been stopped as well */
};
#define NEVER          INT64_MAX
#define EXIT_NOT_FOUND 127 /* of a shell that does not find its command */

struct run {
    const struct job *job;
    const char *source; /* of its manifest */
    const struct run_options *options;
    const struct signals *signals;
    struct local *local;
    struct backend backend;
    struct job_view view;
    struct inbox inbox;
    char program_dir[PATH_MAX]; /* where this program lies: the agent is beside it */
    struct agent_image image;
    struct clock_run clock; /* whoever sets the machine's clock delays no restart */
    int64_t now_ms;         /* by that clock, read once in each turn of the loop */
    int64_t pass_due_ms;    /* when reconcile wants to look again; NEVER: no time set */
    int64_t linger_due_ms;  /* when what still runs of a finished job is stopped; 0: it is not
                               finished, NEVER: that is done */
    int stop_signal;        /* 0: nobody asked to stop */
    bool broken;            /* an error was reported; the run cannot go on */
    bool changed;           /* something to draw */
};

static void on_output(void *context, const char *bytes, size_t count)
{
    struct run *run = context;
    terminal_output(&run->view.terminal, bytes, count);
    run->changed = true; /* the view has to come back */
}

static bool on_has_room(void *context)
{
    const struct run *run = context;
    return output_has_room(&run->view.terminal.output);
}

static void on_warning(void *context, const char *line)
{
    struct run *run = context;
    terminal_line(&run->view.terminal, "shoal: warning: %s", line);
}

static const struct job_status *status_of(struct run *run)
{
    struct snapshot snapshot;
    local_snapshot(run->local, run->now_ms, &snapshot);
    return snapshot.status;
}

static void give_up(struct run *run, const struct error *err)
{
    terminal_line(&run->view.terminal, "shoal: %s: %s", run->source, err->msg);
    run->broken = true;
    local_stop(run->local, run->now_ms);
}

/* ---- one turn of the loop, in order ---- */

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void wait_for_events(struct run *run)
{
    const struct output *output = &run->view.terminal.output;
    struct pollfd fds[FIXED_FDS + LOCAL_REPLICAS_MAX] = {
        {.fd = run->signals->child_fd, .events = POLLIN},
        {.fd = run->signals->stop_fd, .events = POLLIN},
        {.fd = run->inbox.fd, .events = POLLIN},
        {.fd = output->waiting.length > 0 ? output->fd : -1, .events = POLLOUT},
    };
    size_t count = FIXED_FDS + local_poll_fds(run->local, fds + FIXED_FDS, LOCAL_REPLICAS_MAX);
    int64_t due = earliest(job_view_due(&run->view, run->changed), local_due(run->local));
    due =
        earliest(due, earliest(run->pass_due_ms, run->linger_due_ms ? run->linger_due_ms : NEVER));
    int64_t wait_ms = due == NEVER ? -1 : due - clock_run_ms(&run->clock);
    if (due != NEVER && wait_ms < 0)
        wait_ms = 0;
    poll(fds, (nfds_t)count, (int)earliest(wait_ms, INT_MAX));
    run->now_ms = clock_run_ms(&run->clock);
}

/* The first one asks all processes to end, the next one makes them. */
static void take_signals(struct run *run)
{
    while (signals_take(run->signals->child_fd))
        continue; /* local_reap asks for every child anyway */
    int number;
    while ((number = signals_take(run->signals->stop_fd))) {
        if (run->stop_signal) {
            local_kill(run->local);
            continue;
        }
        run->stop_signal = number;
        local_stop(run->local, run->now_ms);
        if (!local_is_idle(run->local))
            terminal_line(&run->view.terminal, "shoal: stopping %s; once more to kill it",
                          run->job->name);
    }
}

/* Carries out plans until there is nothing left to do but wait. */
static int settle(struct run *run, struct error *err)
{
    for (int i = 0; i < PASSES_MAX; i++) {
        auto_arena struct arena *arena = arena_open();
        struct snapshot snapshot;
        local_snapshot(run->local, run->now_ms, &snapshot);
        const struct plan *plan = reconcile(&snapshot, arena);
        int64_t requeue_ms;
        if (apply(plan, run->job, snapshot.status, &run->backend, &requeue_ms, err) < 0)
            return -1;
        run->pass_due_ms = requeue_ms ? requeue_ms : NEVER;
        if (plan->count == 0 || plan->actions[0].kind == ACTION_REQUEUE)
            return 0;
    }
    return error_set(err, ERR_UNSUPPORTED, "job %s did not converge after %d passes",
                     run->job->name, PASSES_MAX);
}

static int64_t longest_grace_ms(const struct job *job)
{
    int64_t longest = 0;
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present &&
            job->replicas[type].template_.grace_period_s.value > longest)
            longest = job->replicas[type].template_.grace_period_s.value;
    return longest * 1000;
}

/* Nothing may outlive the run, but a cluster leaves the pods of a finished job alone (unless
 * cleanPodPolicy says otherwise). Those of a failed one are stopped, those of a job that has
 * succeeded have the grace period to end by themselves before they are. */
static void end_when_finished(struct run *run)
{
    const struct job_status *status = status_of(run);
    if (!condition_finished(status) || run->linger_due_ms == NEVER)
        return;
    if (!run->linger_due_ms)
        run->linger_due_ms = condition_is_true(status, CONDITION_FAILED)
                                 ? run->now_ms
                                 : run->now_ms + longest_grace_ms(run->job);
    if (run->now_ms >= run->linger_due_ms) {
        local_stop(run->local, run->now_ms);
        run->linger_due_ms = NEVER;
    }
}

/* A shell did not find its command, and the launcher that the job calls is not on this machine: no
 * restart would bring it. A 127 for which there is no such reason counts like any other code. */
static int check_launcher(struct run *run, struct error *err)
{
    size_t count;
    const struct local_replica *replicas = local_replicas(run->local, &count), *failed = NULL;
    for (size_t i = 0; i < count && !failed; i++)
        if (replicas[i].failures > 0 && replicas[i].failure_code == EXIT_NOT_FOUND)
            failed = &replicas[i];
    auto_str struct str hint;
    str_init(&hint, HINT_MAX_BYTES);
    if (failed)
        launcher_hint(run->job, getenv("PATH"), &hint);
    if (hint.length == 0)
        return 0;
    return error_set(err, ERR_NOT_FOUND, "%s: exit code %d, command not found: %s", failed->name,
                     EXIT_NOT_FOUND, str_text(&hint));
}

/* The snapshot as of now -> what the job wants -> the containers that are due. */
static void pass(struct run *run)
{
    struct error err;
    int started;
    do {
        if (check_launcher(run, &err) < 0 || settle(run, &err) < 0) {
            give_up(run, &err);
            return;
        }
        end_when_finished(run);
        started = local_start(run->local, run->now_ms, &err);
        if (started < 0)
            give_up(run, &err);
    } while (started > 0);
}

static void show(struct run *run)
{
    bool ending = run->stop_signal || run->broken;
    job_view_print_changes(&run->view, status_of(run), ending);
    bool erased = run->view.terminal.view.length == 0;
    if (erased || run->now_ms >= job_view_due(&run->view, run->changed)) {
        job_view_draw(&run->view, run->now_ms);
        run->changed = false;
    }
}

static bool is_over(struct run *run)
{
    bool ending = run->stop_signal || run->broken || condition_finished(status_of(run));
    return ending && local_is_idle(run->local);
}

/* What `shoal top --local` and `shoal get --local` are told. */
static void answer(struct run *run)
{
    auto_arena struct arena *arena = arena_open();
    char node[HOST_NAME_MAX + 1] = "";
    struct pod_facts *pods;
    gethostname(node, sizeof node - 1);
    size_t count = run_pods(run->local, run->now_ms, node, arena, &pods);
    const struct run_answer told = {
        .job = run->job,
        .status = status_of(run),
        .pods = pods,
        .pod_count = count,
        .events = local_events(run->local),
        .page = run->view.reports.progress.url,
    };
    inbox_answer(&run->inbox, run_answer_make(&told));
}

static void loop(struct run *run)
{
    pass(run);
    while (show(run), !is_over(run)) {
        wait_for_events(run);
        take_signals(run);
        if (inbox_read(&run->inbox, &run->view.reports)) {
            local_tell(run->local, &run->view.reports.training);
            job_view_take_reports(&run->view);
            run->changed = true;
        }
        if (run->inbox.token[0])
            answer(run);
        /* First room for the leader's output, which is read only where there is some. */
        terminal_flush(&run->view.terminal);
        local_read_output(run->local);
        local_reap(run->local, run->now_ms);
        if (!run->stop_signal && !run->broken)
            pass(run);
    }
    local_stop(run->local, run->now_ms); /* no process is left, but restarts may be due */
    local_reap(run->local, run->now_ms);
    show(run);
}

/* ---- from beginning to end ---- */

static int exit_code(struct run *run)
{
    const struct job_status *status = status_of(run);
    terminal_drain(&run->view.terminal, run->stop_signal ? STOPPED_PATIENCE_MS : -1);
    if (run->broken)
        return EXIT_BAD_INPUT;
    job_view_summarize(&run->view, status, run->now_ms);
    if (!condition_finished(status))
        return 128 + run->stop_signal;
    bool succeeded = condition_is_true(status, CONDITION_SUCCEEDED);
    return succeeded && !output_is_broken(&run->view.terminal.output) ? 0 : 1;
}

/* The folder that this program lies in, for the agent beside it; "" if that is not known. */
static void find_program_dir(char *folder, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", folder, bytes - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

static int open_run(struct run *run, struct error *err)
{
    find_program_dir(run->program_dir, sizeof run->program_dir);
    if (inbox_open(&run->inbox, err) < 0 ||
        agent_image_open(&run->image, run->inbox.folder, run->program_dir, err) < 0)
        return -1;
    const struct run_options *o = run->options;
    struct local_options local = {
        .site = {.environment = (const char *const *)environ,
                 .program_dir = run->program_dir[0] ? run->program_dir : NULL,
                 .agent_image_dir = run->image.path[0] ? run->image.path : NULL,
                 .progress_socket = run->inbox.path},
        .log_dir = o->log_dir,
        .keep_ports = o->keep_ports,
        .restart_first_ms = o->restart_delay_s * 1000,
        .restart_max_ms = o->restart_delay_max_s * 1000,
        .output = on_output,
        .has_room = on_has_room,
        .warn = on_warning,
        .context = run,
    };
    return local_open(&run->local, run->job, &local, err);
}

int job_run(const struct job *job, const char *source, const struct run_options *options,
            const struct signals *signals)
{
    auto_free struct run *run = xcalloc(1, sizeof *run);
    run->job = job;
    run->source = source;
    run->options = options;
    run->signals = signals;
    run->clock = clock_run_open(&clocks_system);
    run->now_ms = run->view.started_ms = clock_run_ms(&run->clock);
    run->pass_due_ms = NEVER;
    terminal_open(&run->view.terminal, options->progress, signals->stop_fd);
    run->view.unicode = terminal_is_unicode(getenv);
    struct error err;
    int code = EXIT_BAD_INPUT;
    if (open_run(run, &err) < 0) {
        terminal_line(&run->view.terminal, "shoal: %s: job %s: %s", source, job->name, err.msg);
    } else {
        run->view.job = job;
        run->view.local = run->local;
        run->backend = local_backend(run->local);
        loop(run);
        code = exit_code(run);
    }
    local_close(run->local);
    terminal_close(&run->view.terminal);
    series_free(&run->view.losses);
    agent_image_close(&run->image);
    inbox_close(&run->inbox);
    return code;
}
