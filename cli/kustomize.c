#include "cli/kustomize.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { COMPLAINT_MAX_BYTES = 64 * 1024 };

/* Adds what can be read now; returns read's result. */
static ssize_t read_some(int fd, struct str *text)
{
    char chunk[16 * 1024];
    ssize_t count = read(fd, chunk, sizeof chunk);
    if (count > 0)
        str_add_bytes(text, chunk, (size_t)count);
    return count;
}

/* Reads both pipes to their ends, side by side: the program would stop at a full one that nobody
 * reads. */
static void read_both(int out_fd, struct str *out, int complaint_fd, struct str *complaint)
{
    struct pollfd fds[] = {{.fd = out_fd, .events = POLLIN},
                           {.fd = complaint_fd, .events = POLLIN}};
    while ((fds[0].fd >= 0 || fds[1].fd >= 0) && poll(fds, 2, -1) >= 0)
        for (int i = 0; i < 2; i++)
            if (fds[i].revents && read_some(fds[i].fd, i == 0 ? out : complaint) <= 0)
                fds[i].fd = -1;
}

/* Runs argv; its stdout goes to *out, its stderr to *complaint. Returns errno if it cannot be run
 * (ENOENT: it is not on the PATH); else 0 and *ret_status from waitpid. */
static int run(char *const *argv, struct str *out, struct str *complaint, int *ret_status)
{
    int out_pipe[2], complaint_pipe[2];
    if (pipe2(out_pipe, O_CLOEXEC) < 0)
        return errno;
    auto_close int out_fd = out_pipe[0];
    if (pipe2(complaint_pipe, O_CLOEXEC) < 0) {
        close(out_pipe[1]);
        return errno;
    }
    auto_close int complaint_fd = complaint_pipe[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out_pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaint_pipe[1], STDERR_FILENO);
    pid_t pid;
    int failure = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    /* While our own copies of the write ends are open, no read comes to an end. */
    close(out_pipe[1]);
    close(complaint_pipe[1]);
    if (failure)
        return failure;
    read_both(out_fd, out, complaint_fd, complaint);
    return waitpid(pid, ret_status, 0) < 0 ? errno : 0;
}

int kustomize_build(const char *folder, struct str *text, char **ret_command, struct error *err)
{
    struct stat st;
    if (stat(folder, &st) < 0)
        return error_errno(err, errno, "%s", folder);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ERR_INPUT, "%s: not a folder; for a file use -f", folder);
    char *const commands[][4] = {{"kubectl", "kustomize", (char *)folder, NULL},
                                 {"kustomize", "build", (char *)folder, NULL}};
    for (size_t i = 0; i < array_length(commands); i++) {
        auto_str struct str complaint;
        str_init(&complaint, COMPLAINT_MAX_BYTES);
        int status, failure = run(commands[i], text, &complaint, &status);
        if (failure == ENOENT)
            continue;
        if (failure)
            return error_errno(err, failure, "run %s", commands[i][0]);
        if (status != 0) {
            const char *line = str_text(&complaint);
            return error_set(err, ERR_INPUT, "%s %s %s failed: %.*s", commands[i][0],
                             commands[i][1], folder, (int)strcspn(line, "\n"), line);
        }
        if (text->truncated)
            return error_set(err, ERR_INPUT, "%s: longer than %zu bytes", folder, text->cap);
        *ret_command = xasprintf("%s %s %s", commands[i][0], commands[i][1], folder);
        return 0;
    }
    return error_set(err, ERR_NOT_FOUND,
                     "%s: a kustomization needs kubectl or kustomize, and neither is on the PATH",
                     folder);
}
