#include "tests/operator/histories/explore.h"

#include "tests/operator/histories/search.h"
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void add(struct explored *all, const struct explored *found)
{
    all->states += found->states;
    all->edges += found->edges;
    all->rests += found->rests;
    all->rests_sum += found->rests_sum;
    if (found->depth > all->depth)
        all->depth = found->depth;
    if (found->longest_calm > all->longest_calm)
        all->longest_calm = found->longest_calm;
}

/* In a process of its own. One that fails ends as the whole test would. */
static pid_t start(int number, struct explored *ret_found)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    if (number == 0)
        search_all();
    *ret_found = search_for_others(); /* what it found before counts, too */
    _exit(0);
}

/* Waits for all; the first that fails ends the others, which would wait for it. */
static bool wait_for(pid_t *pids, int count)
{
    bool well = true;
    for (int left = count; left > 0; left--) {
        int status = 0;
        pid_t pid = wait(&status);
        for (int i = 0; i < count; i++) {
            if (pids[i] == pid)
                pids[i] = 0;
            else if (pids[i] && status && well)
                kill(pids[i], SIGKILL);
        }
        well = well && !status;
    }
    return well;
}

static struct explored explore_together(int processes)
{
    struct explored all = {0};
    pid_t pids[EXPLORE_MAX_PROCESSES];
    size_t bytes = (size_t)processes * sizeof(struct explored);
    struct explored *found =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(found != MAP_FAILED && processes <= EXPLORE_MAX_PROCESSES);
    for (int i = 0; i < processes; i++)
        pids[i] = start(i, &found[i]);
    if (!wait_for(pids, processes))
        fail_msg("a history fails: see above");
    for (int i = 0; i < processes; i++)
        add(&all, &found[i]);
    munmap(found, bytes);
    return all;
}

struct explored explore(const struct world_setting *setting, struct exploring exploring)
{
    search_open(setting, exploring);
    struct explored found =
        exploring.processes > 1 ? explore_together(exploring.processes) : search_all();
    search_close();
    return found;
}
