#include "operator/command.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK_BYTES = 4096, SHOWN_BYTES = 300 };

/* A command that runs: its process group is its own. */
struct running {
    pid_t pid;
    int process; /* pidfd: readable once it has ended */
    int output, errors;
    int64_t deadline_ms; /* monotonic */
};

static void close_running(struct running *running)
{
    mem_cleanup_close(&running->process);
    mem_cleanup_close(&running->output);
    mem_cleanup_close(&running->errors);
}

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

static int start(const struct command *command, struct running *running, struct error *err)
{
    auto_close int output_end = -1;
    auto_close int errors_end = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, errno, "pipe");
    running->output = ends[0];
    output_end = ends[1];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, errno, "pipe");
    running->errors = ends[0];
    errors_end = ends[1];
    /* ours do not block, the command's do */
    fcntl(output_end, F_SETFL, 0);
    fcntl(errors_end, F_SETFL, 0);
    int cause = spawn(command, output_end, errors_end, &running->pid);
    if (cause)
        return error_errno(err, cause, "%s", command->argv[0]);
    running->process = pidfd_open(running->pid, 0);
    if (running->process < 0)
        return error_errno(err, errno, "pidfd_open");
    running->deadline_ms = clock_monotonic_ms() + command->limit_ms;
    return 0;
}

/* What is there now, without waiting. At the end *fd becomes -1, as poll would report it for ever.
 */
static void drain(int *fd, struct str *to)
{
    char bytes[CHUNK_BYTES];
    ssize_t count = -1;
    while (*fd >= 0 && (count = read(*fd, bytes, sizeof bytes)) > 0)
        str_add_bytes(to, bytes, (size_t)count);
    if (count == 0)
        *fd = -1;
}

/* Until the command has ended; false if its time is over first. Its children may hold the pipes
 * open longer: nobody waits for those. */
static bool wait_for_end(const struct running *running, struct str *output, struct str *errors)
{
    struct pollfd fds[] = {{.fd = running->process, .events = POLLIN},
                           {.fd = running->output, .events = POLLIN},
                           {.fd = running->errors, .events = POLLIN}};
    for (;;) {
        int64_t left_ms = running->deadline_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            return false;
        poll(fds, array_length(fds), left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        drain(&fds[1].fd, output);
        drain(&fds[2].fd, errors);
        if (fds[0].revents)
            return true;
    }
}

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

static int judge(const struct command *command, bool in_time, int status, const struct str *output,
                 const struct str *errors, struct error *err)
{
    const char *name = command->argv[0];
    char said[SHOWN_BYTES + 1];
    last_words(errors, said);
    const char *colon = *said ? ": " : "";
    if (!in_time)
        return error_set(err, ERR_TIMEOUT, "%s: not done after %.1f s%s%s", name,
                         (double)command->limit_ms / 1000, colon, said);
    if (WIFSIGNALED(status))
        return error_set(err, ERR_IO, "%s: killed by signal %d%s%s", name, WTERMSIG(status), colon,
                         said);
    if (WEXITSTATUS(status))
        return error_set(err, ERR_IO, "%s: exit code %d%s%s", name, WEXITSTATUS(status), colon,
                         said);
    if (output->truncated)
        return error_set(err, ERR_LIMIT, "%s: wrote more than %d bytes", name,
                         COMMAND_MAX_OUTPUT_BYTES);
    return 0;
}

int command_run(const struct command *command, char **ret_output, size_t *ret_bytes,
                struct error *err)
{
    assert(command->argv[0] && command->env && command->limit_ms > 0);
    __attribute__((cleanup(close_running))) struct running running = {
        .pid = -1, .process = -1, .output = -1, .errors = -1};
    int result = start(command, &running, err);
    auto_str struct str output, errors;
    str_init(&output, COMMAND_MAX_OUTPUT_BYTES);
    str_init(&errors, COMMAND_MAX_OUTPUT_BYTES);
    bool in_time = result == 0 && wait_for_end(&running, &output, &errors);
    if (running.pid > 0) {
        int status = 0;
        kill(-running.pid, SIGKILL); /* what it left behind, too */
        waitpid(running.pid, &status, 0);
        if (result == 0)
            result = judge(command, in_time, status, &output, &errors, err);
    }
    if (result)
        return -1;
    *ret_output = output.text ? take(output.text) : xstrdup("");
    *ret_bytes = output.length;
    return 0;
}
