#include "operator/local/local_process.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* Signals to a guard: SIGTERM is passed on; SIGHUP ("the line is dead") kills the whole tree, and
 * is also what the kernel sends it when we die. */
enum { GUARD_KILL = SIGHUP, EXIT_KILLED = 128 + SIGKILL };

static const char *env_value(const char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, length) && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

static char *join(const char *directory, const char *path)
{
    if (path[0] == '/' || !directory)
        return xstrdup(path);
    return xasprintf("%s/%s", directory, path);
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The file that argv[0] names for a process in p->directory; NULL if there is none.
 * Caller frees. */
static char *find_program(const struct local_process *p)
{
    const char *name = p->argv[0];
    if (strchr(name, '/')) {
        auto_free char *path = join(p->directory, name);
        return is_program(path) ? take(path) : NULL;
    }
    const char *search = env_value(p->env, "PATH");
    while (search && *search) {
        size_t length = strcspn(search, ":");
        auto_free char *folder = xasprintf("%.*s", (int)length, length ? search : ".");
        auto_free char *relative = xasprintf("%s/%s", length ? folder : ".", name);
        auto_free char *path = join(p->directory, relative);
        if (is_program(path))
            return take(path);
        search += length + (search[length] == ':');
    }
    return NULL;
}

/* Why a path is no program. */
static const char *flaw(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? "not found on this machine" : strerror(errno);
    if (S_ISDIR(st.st_mode))
        return "is a folder";
    return S_ISREG(st.st_mode) ? "is not executable; chmod +x it, or name its interpreter first"
                               : "is not a file that can be executed";
}

static int check_directory(const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0 && errno != ENOENT)
        return error_errno(err, errno, "working directory %s", path);
    if (stat(path, &st) < 0)
        return error_set(err, ERR_NOT_FOUND, "working directory %s: not found on this machine",
                         path);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ERR_NOT_FOUND, "working directory %s: is not a folder", path);
    return 0;
}

int local_process_check(const struct local_process *p, struct error *err)
{
    if (p->directory && check_directory(p->directory, err) < 0)
        return -1;
    auto_free char *path = find_program(p);
    if (path)
        return 0;
    if (strchr(p->argv[0], '/')) {
        auto_free char *named = join(p->directory, p->argv[0]);
        return error_set(err, ERR_NOT_FOUND, "command %s: %s", p->argv[0], flaw(named));
    }
    return error_set(err, ERR_NOT_FOUND, "command %s: not found on the PATH", p->argv[0]);
}

/* Calls visit(pid) for each child of this process, as /proc lists them. */
static void each_child(void (*visit)(pid_t pid, void *context), void *context)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    struct dirent *entry;
    while ((entry = readdir(proc))) {
        int64_t pid;
        if (!str_to_i64(entry->d_name, 1, INT_MAX, &pid))
            continue;
        char path[64], line[512];
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t count = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
        if (count <= 0)
            continue;
        line[count] = '\0';
        /* "pid (name) state ppid ...": the name may hold anything, a ")" too */
        const char *after_name = strrchr(line, ')');
        int parent;
        if (after_name && sscanf(after_name, ") %*c %d", &parent) == 1 && parent == getpid())
            visit((pid_t)pid, context);
    }
    closedir(proc);
}

static void kill_child(pid_t pid, void *context)
{
    (void)context;
    kill(pid, SIGKILL);
}

/* Kills all descendants: children first, whose own children then become ours. */
static void kill_tree(void)
{
    for (;;) {
        each_child(kill_child, NULL);
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
            return;
    }
}

/* The first process of the container: never returns. Tells errno to `report` if it cannot start. */
static _Noreturn void become_container(const struct local_process *p, const char *path,
                                       pid_t guard_parent, int report)
{
    /* The parent may have died before the call: then no signal comes, and the process has another
     * parent already. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard_parent)
        _exit(EXIT_KILLED);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    /* Blocked and ignored signals survive execve(), and the guard has blocked all. */
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Marked and not closed: `report` must live until execve() has succeeded, whose success its end
     * shows. */
    close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(p->output, STDOUT_FILENO) >= 0 &&
        dup2(p->output, STDERR_FILENO) >= 0 && (!p->directory || chdir(p->directory) == 0))
        execve(path, (char *const *)p->argv, (char *const *)p->env);
    int cause = errno;
    ssize_t ignored = write(report, &cause, sizeof cause);
    (void)ignored;
    _exit(EXIT_KILLED);
}

/* Removes a folder of links. */
static void remove_links(const char *folder)
{
    DIR *links = opendir(folder);
    const struct dirent *entry;
    while (links && (entry = readdir(links)))
        unlinkat(dirfd(links), entry->d_name, 0); /* "." and ".." stay */
    if (links)
        closedir(links);
    rmdir(folder);
}

static void remove_socket(const char *path)
{
    unlink(path);
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
        rmdir(folder);
    }
}

/* Waits for the end of the container, an order, or the death of `parent`; then ends likewise. */
static _Noreturn void guard_wait(const struct local_process *p, pid_t container, pid_t parent)
{
    sigset_t all;
    sigfillset(&all);
    for (;;) {
        int number = sigwaitinfo(&all, NULL);
        if (number == SIGTERM)
            kill(container, SIGTERM);
        if (number == GUARD_KILL) {
            kill_tree();
            if (getppid() != parent && p->links_path)
                remove_links(p->links_path);
            if (getppid() != parent && p->socket_path)
                remove_socket(p->socket_path);
            _exit(EXIT_KILLED);
        }
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == container) {
                kill_tree();
                _exit(local_process_exit_code(status));
            }
    }
}

/* A process between us and the container, since only a parent can kill all of it. As subreaper it
 * inherits whatever the container's processes leave behind. Our death reaches it as a signal, even
 * by SIGKILL. */
static _Noreturn void become_guard(const struct local_process *p, const char *path, pid_t parent,
                                   int report)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, GUARD_KILL);
    if (getppid() != parent)
        _exit(EXIT_KILLED);
    /* so that "killall shoal" leaves the guards to their work */
    prctl(PR_SET_NAME, "shoal-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    pid_t guard = getpid();
    pid_t container = fork();
    if (container == 0)
        become_container(p, path, guard, report);
    if (container < 0) {
        int cause = errno;
        ssize_t ignored = write(report, &cause, sizeof cause);
        (void)ignored;
        _exit(EXIT_KILLED);
    }
    /* What the parent has open must end with the parent: the locks of its ports and of its log
     * folder above all. */
    close_range(0, UINT_MAX, 0);
    guard_wait(p, container, parent);
}

int local_process_start(const struct local_process *p, pid_t *ret_pid, struct error *err)
{
    assert(p->argv[0] && p->output >= 0);
    if (local_process_check(p, err) < 0)
        return -1;
    auto_free char *path = find_program(p);
    int report[2];
    if (!path || pipe2(report, O_CLOEXEC) < 0)
        return error_errno(err, path ? errno : ENOENT, "start %s", p->argv[0]);

    pid_t parent = getpid();
    pid_t guard = fork();
    int cause = errno;
    if (guard == 0)
        become_guard(p, path, parent, report[1]);
    close(report[1]);
    /* ends at once when the program runs, as the other end is close-on-exec */
    ssize_t reported = guard < 0 ? (ssize_t)sizeof cause : read(report[0], &cause, sizeof cause);
    close(report[0]);
    if (reported == (ssize_t)sizeof cause) {
        if (guard > 0)
            waitpid(guard, NULL, 0);
        return error_errno(err, cause, "start %s", p->argv[0]);
    }
    *ret_pid = guard;
    return 0;
}

void local_process_terminate(pid_t guard)
{
    kill(guard, SIGTERM);
}

void local_process_kill(pid_t guard)
{
    kill(guard, GUARD_KILL);
}

int local_process_exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int local_process_adopt(struct error *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return error_errno(err, errno, "become a subreaper");
    return 0;
}

struct orphans {
    bool (*is_guard)(pid_t pid, void *context);
    void *context;
    int killed;
};

static void kill_unless_guard(pid_t pid, void *context)
{
    struct orphans *orphans = context;
    if (orphans->is_guard(pid, orphans->context))
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    orphans->killed++;
}

void local_process_kill_orphans(bool (*is_guard)(pid_t pid, void *context), void *context)
{
    struct orphans orphans = {.is_guard = is_guard, .context = context};
    do {
        orphans.killed = 0;
        each_child(kill_unless_guard, &orphans);
    } while (orphans.killed > 0); /* the children of those are ours now */
}
