#include "tests/runner/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A test that gets less than this share is given up at last: its machine runs nothing. */
#define SHARE_LEAST 0.005
/* A thread that waits for a disk, which may never answer, is a tenth of a thread that
 * gets nothing. */
#define DISK_SHARE 0.1

struct process {
    pid_t pid, parent;
    char state;
    double cpu_s;
    bool is_below; /* the root */
};

struct thread {
    pid_t tid;
    uint64_t ran_ns, waited_ns; /* since it began */
};

struct tree {
    pid_t root;
    struct process *processes; /* of the whole machine */
    size_t count, room;
    struct thread *threads, *before; /* of the tree now, and when it was looked at before; by tid */
    size_t thread_count, before_count, thread_room, before_room;
    double share;
};

static void *grow(void *array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 64;
    array = realloc(array, *room * bytes);
    if (!array)
        abort();
    return array;
}

struct tree *tree_open(pid_t root)
{
    struct tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        abort();
    tree->root = root;
    tree->share = 1;
    return tree;
}

void tree_close(struct tree *tree)
{
    free(tree->processes);
    free(tree->threads);
    free(tree->before);
    free(tree);
}

/* The text of a file of /proc, or false if the process is gone. */
static bool read_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return true;
}

/* proc(5), /proc/PID/stat: a name may have brackets and spaces, what follows its last bracket has
 * none. */
static bool read_process(pid_t pid, struct process *p)
{
    char path[64], text[1024];
    unsigned long user, system;
    long waited_user, waited_system;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *rest = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                        &p->state, &p->parent, &user, &system, &waited_user, &waited_system) != 6)
        return false;
    p->pid = pid;
    p->cpu_s = (double)(user + system + (unsigned long)(waited_user + waited_system)) /
               (double)sysconf(_SC_CLK_TCK);
    p->is_below = false;
    return true;
}

static void read_processes(struct tree *tree)
{
    DIR *dir = opendir("/proc");
    tree->count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = atoi(entry->d_name);
        tree->processes = grow(tree->processes, tree->count, &tree->room, sizeof *tree->processes);
        if (pid > 0 && read_process(pid, &tree->processes[tree->count]))
            tree->count++;
    }
    if (dir)
        closedir(dir);
}

/* Marks children of what is marked until there are no more. */
static int mark_below(struct tree *tree)
{
    int marked = 0, before;
    do {
        before = marked;
        for (size_t i = 0; i < tree->count; i++) {
            struct process *p = &tree->processes[i];
            bool is_below = p->parent == tree->root;
            for (size_t j = 0; !is_below && !p->is_below && j < tree->count; j++)
                is_below = tree->processes[j].is_below && tree->processes[j].pid == p->parent;
            if (is_below && !p->is_below) {
                p->is_below = true;
                marked++;
            }
        }
    } while (marked > before);
    return marked;
}

static void read_threads(struct tree *tree, pid_t pid)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct thread t = {.tid = atoi(entry->d_name)};
        char file[sizeof path + 32];
        snprintf(file, sizeof file, "/proc/%d/task/%d/schedstat", pid, t.tid);
        if (t.tid <= 0 || !read_text(file, text, sizeof text) ||
            sscanf(text, "%lu %lu", &t.ran_ns, &t.waited_ns) != 2)
            continue;
        tree->threads = grow(tree->threads, tree->thread_count, &tree->thread_room, sizeof t);
        tree->threads[tree->thread_count++] = t;
    }
    if (dir)
        closedir(dir);
}

static int compare_threads(const void *a, const void *b)
{
    return ((const struct thread *)a)->tid - ((const struct thread *)b)->tid;
}

static double share_between(const struct tree *tree, bool waits_for_disk)
{
    static const struct thread none;
    double ran = 0, waited = 0;
    for (size_t i = 0; i < tree->thread_count; i++) {
        const struct thread *now = &tree->threads[i];
        const struct thread *before =
            tree->before_count
                ? bsearch(now, tree->before, tree->before_count, sizeof *now, compare_threads)
                : NULL;
        if (!before || before->ran_ns > now->ran_ns || before->waited_ns > now->waited_ns)
            before = &none; /* it is new, maybe with the number of another */
        ran += (double)(now->ran_ns - before->ran_ns);
        waited += (double)(now->waited_ns - before->waited_ns);
    }
    double share = ran + waited > 0 ? ran / (ran + waited) : 1;
    if (waits_for_disk && share > DISK_SHARE)
        share = DISK_SHARE;
    return share < SHARE_LEAST ? SHARE_LEAST : share;
}

int tree_look(struct tree *tree)
{
    struct thread *before = tree->before;
    size_t room = tree->before_room;
    bool waits_for_disk = false;
    tree->before = tree->threads, tree->before_count = tree->thread_count,
    tree->before_room = tree->thread_room;
    tree->threads = before, tree->thread_count = 0, tree->thread_room = room;
    read_processes(tree);
    int marked = mark_below(tree);
    for (size_t i = 0; i < tree->count; i++)
        if (tree->processes[i].is_below) {
            read_threads(tree, tree->processes[i].pid);
            waits_for_disk = waits_for_disk || tree->processes[i].state == 'D';
        }
    if (tree->thread_count)
        qsort(tree->threads, tree->thread_count, sizeof *tree->threads, compare_threads);
    tree->share = share_between(tree, waits_for_disk);
    return marked;
}

double tree_share(const struct tree *tree)
{
    return tree->share;
}

double tree_cpu_s(const struct tree *tree)
{
    double sum = 0;
    for (size_t i = 0; i < tree->count; i++)
        sum += tree->processes[i].is_below ? tree->processes[i].cpu_s : 0;
    return sum;
}

void tree_signal(const struct tree *tree, int number)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->processes[i].is_below)
            kill(tree->processes[i].pid, number);
}

void tree_print(const struct tree *tree, FILE *out)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct process *p = &tree->processes[i];
        char path[64], text[160], *end = text;
        if (!p->is_below)
            continue;
        snprintf(path, sizeof path, "/proc/%d/cmdline", p->pid);
        if (!read_text(path, text, sizeof text))
            snprintf(text, sizeof text, "(gone)");
        for (; end < text + sizeof text - 1 && (end[0] || end[1]); end++)
            if (*end == '\0' || *end == '\n')
                *end = ' ';
        fprintf(out, "  %d %c %.2f s %s\n", p->pid, p->state, p->cpu_s, text);
    }
}
