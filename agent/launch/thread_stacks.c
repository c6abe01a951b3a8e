#include "agent/launch/thread_stacks.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, THREADS_MAX = 64, ANSWER_S = 1, SILENT_MAX = 3, TEXT_BYTES = 4096 };

static sem_t written;
static atomic_int asked; /* the thread whose answer is waited for; 0: none */

/* Not SIGQUIT or SIGUSR2, which a library or a person may use. */
static int stack_signal(void)
{
    return SIGRTMIN + 3;
}

static void on_signal(int number)
{
    (void)number;
    int before = errno;
    void *frames[FRAMES_MAX];
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    /* Whoever answers late is not taken for another. */
    if (atomic_load(&asked) == (int)syscall(SYS_gettid))
        sem_post(&written);
    errno = before;
}

void thread_stacks_install(void)
{
    void *frame;
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sem_init(&written, 0, 0);
    backtrace(&frame, 1); /* loads what it needs now: in a handler it could not allocate */
    sigaction(stack_signal(), &action, NULL);
}

/* The first line of /proc/PID/task/TID/NAME; "": it cannot be read. */
static void read_line(int pid, int tid, const char *name, char text[TEXT_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, TEXT_BYTES, file))
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

/* "T" of "123 (a name) T ...": proc(5). */
static char state_of(int pid, int tid)
{
    char text[TEXT_BYTES];
    read_line(pid, tid, "stat", text);
    const char *after = strrchr(text, ')');
    return after && after[1] == ' ' ? after[2] : '?';
}

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "waiting for a disk";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
        return "ended";
    default:
        return "unknown";
    }
}

static void add_kernel_stack(int pid, int tid, struct str *out)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stack", pid, tid);
    FILE *file = fopen(path, "re"); /* root's, and often nobody's */
    while (file && fgets(line, sizeof line, file))
        str_printf(out, "    %s", line);
    if (file)
        fclose(file);
}

static void describe_thread(int pid, int tid, struct str *out)
{
    char name[TEXT_BYTES], wchan[TEXT_BYTES];
    read_line(pid, tid, "comm", name);
    read_line(pid, tid, "wchan", wchan);
    str_printf(out, "  thread %d (%.16s): %s", tid, tid == pid ? "main" : name,
               state_name(state_of(pid, tid)));
    if (wchan[0] && strcmp(wchan, "0") != 0)
        str_printf(out, ", in %.64s", wchan);
    str_add(out, "\n");
    add_kernel_stack(pid, tid, out);
}

/* ret_tids[THREADS_MAX]. */
static int list_threads(int pid, int ret_tids[THREADS_MAX])
{
    char path[32];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    if (!directory)
        return 0;
    for (const struct dirent *entry = readdir(directory); entry && count < THREADS_MAX;
         entry = readdir(directory)) {
        int tid = (int)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            ret_tids[count++] = tid;
    }
    closedir(directory);
    return count;
}

void thread_stacks_describe(int pid, struct str *out)
{
    int tids[THREADS_MAX], count = list_threads(pid, tids);
    for (int i = 0; i < count; i++)
        describe_thread(pid, tids[i], out);
}

void thread_stacks_show(int rank, int pid)
{
    auto_str struct str text;
    str_init(&text, 64 * 1024);
    thread_stacks_describe(pid, &text);
    dprintf(STDERR_FILENO, "shoal-agent: rank %d, process %d, as the kernel shows it:\n%s", rank,
            pid, text.length > 0 ? str_text(&text) : "  it is not there\n");
}

/* Libraries have threads that take no signals: asking them would cost ANSWER_S each. */
static bool takes_signal(int tid)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
            break;
    if (file)
        fclose(file);
    return !(blocked >> (stack_signal() - 1) & 1);
}

static bool answers(int tid)
{
    struct timespec until;
    int result = -1;
    while (sem_trywait(&written) == 0) /* an answer that came too late */
        ;
    atomic_store(&asked, tid);
    if (syscall(SYS_tgkill, getpid(), tid, stack_signal()) != 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ANSWER_S;
    do
        result = sem_timedwait(&written, &until);
    while (result != 0 && errno == EINTR);
    atomic_store(&asked, 0);
    return result == 0;
}

void thread_stacks_print(int rank)
{
    int tids[THREADS_MAX], count = list_threads(getpid(), tids), self = (int)syscall(SYS_gettid);
    int silent = 0; /* threads that wait in a driver may never answer: not all are waited for */
    for (int i = 0; i < count; i++) {
        char name[TEXT_BYTES];
        if (tids[i] == self) /* it prints, and is not what hangs */
            continue;
        read_line(getpid(), tids[i], "comm", name);
        dprintf(STDERR_FILENO, "shoal-agent: rank %d: thread %d (%.16s), called from:\n", rank,
                tids[i], tids[i] == getpid() ? "main" : name);
        if (silent < SILENT_MAX && takes_signal(tids[i]) && answers(tids[i]))
            continue;
        silent += takes_signal(tids[i]);
        auto_str struct str text;
        str_init(&text, 64 * 1024);
        describe_thread(getpid(), tids[i], &text);
        dprintf(STDERR_FILENO, "%s", str_text(&text));
    }
}
