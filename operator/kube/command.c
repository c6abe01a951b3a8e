#include "operator/kube/command.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK_BYTES = 4096, SHOWN_BYTES = 300 };

enum { PROCESS, OUTPUT, ERRORS }; /* its files; a pidfd is readable once it has ended */

/* Its process group is its own. */
struct command_run {
    char *name;
    pid_t pid;                /* -1: it did not start */
    int fds[COMMAND_FDS_MAX]; /* -1: read to its end */
    struct str output, errors;
    int64_t limit_ms, deadline_ms; /* monotonic */
    bool ended;
};

/* A child inherits blocked and ignored signals. The operator reads SIGTERM from a signalfd and
 * ignores SIGPIPE; the plugin must be killable and end with its pipe. Its own process group lets
 * reap() kill its children as well. */
static int spawn(const struct command *command, int output, int errors, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    int cause = posix_spawnp(ret_pid, command->argv[0], &files, &attributes,
                             (char *const *)command->argv, (char *const *)command->env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return cause;
}

static int start(const struct command *command, struct command_run *run, struct error *err)
{
    auto_close int output_end = -1;
    auto_close int errors_end = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, errno, "pipe");
    run->fds[OUTPUT] = ends[0];
    output_end = ends[1];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, errno, "pipe");
    run->fds[ERRORS] = ends[0];
    errors_end = ends[1];
    /* ours do not block, the command's do */
    fcntl(output_end, F_SETFL, 0);
    fcntl(errors_end, F_SETFL, 0);
    int cause = spawn(command, output_end, errors_end, &run->pid);
    if (cause) {
        run->pid = -1;
        return error_errno(err, cause, "%s", command->argv[0]);
    }
    /* The end of the process is waited for in the operator's one poll(). SIGCHLD would signal that
     * some child has ended, and not which. */
    run->fds[PROCESS] = pidfd_open(run->pid, 0);
    if (run->fds[PROCESS] < 0)
        return error_errno(err, errno, "pidfd_open");
    run->deadline_ms = clock_monotonic_ms() + command->limit_ms;
    return 0;
}

int command_start(struct command_run **ret_run, const struct command *command, struct error *err)
{
    assert(command->argv[0] && command->env && command->limit_ms > 0);
    struct command_run *run = xcalloc(1, sizeof *run);
    *run = (struct command_run){.name = xstrdup(command->argv[0]),
                                .pid = -1,
                                .fds = {-1, -1, -1},
                                .limit_ms = command->limit_ms};
    str_init(&run->output, COMMAND_MAX_OUTPUT_BYTES);
    str_init(&run->errors, COMMAND_MAX_OUTPUT_BYTES);
    if (start(command, run, err) < 0) {
        command_cancel(run);
        return -1;
    }
    *ret_run = run;
    return 0;
}

/* Kills what is left of it. Returns its status. */
static int reap(struct command_run *run)
{
    int status = 0;
    if (run->pid > 0) {
        /* Before waitpid: until then the zombie keeps the number of its group from being given to
         * another. */
        kill(-run->pid, SIGKILL);
        waitpid(run->pid, &status, 0);
    }
    run->pid = -1;
    return status;
}

void command_cancel(struct command_run *run)
{
    if (!run)
        return;
    reap(run);
    for (int i = 0; i < COMMAND_FDS_MAX; i++)
        mem_cleanup_close(&run->fds[i]);
    str_free(&run->output);
    str_free(&run->errors);
    free(run->name);
    free(run);
}

/* ---- while it runs ---- */

size_t command_fds(const struct command_run *run, struct pollfd *fds)
{
    size_t count = 0;
    for (int i = 0; i < COMMAND_FDS_MAX; i++)
        if (run->fds[i] >= 0)
            fds[count++] = (struct pollfd){.fd = run->fds[i], .events = POLLIN};
    return count;
}

int64_t command_left_ms(const struct command_run *run)
{
    return clock_until_ms(run->deadline_ms, clock_monotonic_ms());
}

/* What is there now. At the end the file is closed, as poll would report it for ever. */
static void drain(int *fd, struct str *to)
{
    char bytes[CHUNK_BYTES];
    ssize_t count = -1;
    while (*fd >= 0 && (count = read(*fd, bytes, sizeof bytes)) > 0)
        str_add_bytes(to, bytes, (size_t)count);
    if (count == 0)
        mem_cleanup_close(fd);
}

bool command_has_finished(struct command_run *run)
{
    /* The process decides, not the end of its output: a child that it leaves behind may hold the
     * pipes open for ever. */
    struct pollfd process = {.fd = run->fds[PROCESS], .events = POLLIN};
    run->ended = run->ended || poll(&process, 1, 0) > 0;
    /* after the look: what it wrote before its end is there */
    drain(&run->fds[OUTPUT], &run->output);
    drain(&run->fds[ERRORS], &run->errors);
    return run->ended || command_left_ms(run) == 0;
}

/* ---- how it ended ---- */

/* The end of what it said, on one line. */
static void last_words(const struct str *errors, char out[SHOWN_BYTES + 1])
{
    const char *text = str_text(errors);
    size_t length = errors->length;
    while (length && (unsigned char)text[length - 1] <= ' ')
        length--;
    size_t from = length > SHOWN_BYTES ? length - SHOWN_BYTES : 0;
    for (size_t i = from; i < length; i++)
        out[i - from] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    out[length - from] = '\0';
}

static int judge(const struct command_run *run, int status, struct error *err)
{
    char said[SHOWN_BYTES + 1];
    last_words(&run->errors, said);
    const char *colon = *said ? ": " : "";
    if (!run->ended)
        return error_set(err, ERR_TIMEOUT, "%s: timed out after %.1f s%s%s", run->name,
                         (double)run->limit_ms / 1000, colon, said);
    if (WIFSIGNALED(status))
        return error_set(err, ERR_IO, "%s: killed by signal %d%s%s", run->name, WTERMSIG(status),
                         colon, said);
    if (WEXITSTATUS(status))
        return error_set(err, ERR_IO, "%s: exit code %d%s%s", run->name, WEXITSTATUS(status), colon,
                         said);
    if (run->output.truncated)
        return error_set(err, ERR_LIMIT, "%s: wrote more than %d bytes", run->name,
                         COMMAND_MAX_OUTPUT_BYTES);
    return 0;
}

int command_finish(struct command_run *run, char **ret_output, size_t *ret_bytes, struct error *err)
{
    int result = judge(run, reap(run), err);
    if (result == 0) {
        *ret_bytes = run->output.length;
        *ret_output = run->output.text ? take(run->output.text) : xstrdup("");
    }
    command_cancel(run);
    return result;
}
