#include "tests/agent/nccl_ranks.h"

#include "base/contract.h"
#include "base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_nccl(struct rank *r, struct comm *host, struct stream *s, struct error *err)
{
    const struct nccl_wish *wish = r->arg;
    struct comm_nccl_options options = {.store = comm_local_store(r->group),
                                        .join_timeout_ms = RANKS_TIMEOUT_MS,
                                        .watchdog = wish->watchdog,
                                        .registers = wish->registers,
                                        .has_windows = wish->has_windows};
    struct nccl_api api;
    struct comm *c = host;
    struct collective_progress progress;
    collective_progress_init(&progress);
    options.watchdog.progress = &progress;
    options.watchdog.records = 16;
    if (options.watchdog.timeout_ms == 0)
        options.watchdog.timeout_ms = RANKS_TIMEOUT_MS;
    if (!options.watchdog.dump_path)
        options.watchdog.dump_path = "";
    if (r->size > 1 && (nccl_api_open(&api, err) || comm_nccl_open(&api, &options, stream_device(s),
                                                                   r->rank, r->size, &c, err)))
        return -1;
    int result = wish->body(r, c, s, err);
    bool called = c->stats.calls[COMM_ALL_REDUCE] > 0;
    if (c != host)
        comm_close(c);
    struct collective_state at = collective_progress_read(&progress);
    collective_progress_destroy(&progress);
    if (result == 0 && r->size > 1 && ((called && at.entered == 0) || at.ended != at.entered))
        return error_set(err, ERR_INPUT, "of %d collectives %d have ended", (int)at.entered,
                         (int)at.ended);
    return result;
}

void nccl_ranks_run(struct rank *ranks, int size, const char *settings,
                    const struct nccl_wish *wish)
{
    struct nccl_wish whole = *wish;
    whole.watchdog.aborts = !wish->waits_out;
    setenv("FAKE_NCCL", settings, 1);
    for (int i = 0; i < size; i++)
        ranks[i].arg = &whole;
    ranks_run(ranks, size, RANKS_TIMEOUT_MS, run_nccl);
}

/* In a process of its own, which it ends. */
static void run_to_the_end(const struct nccl_wish *wish, const char *settings, int error_pipe)
{
    const struct rlimit no_core = {0, 0};
    struct rank ranks[2] = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(error_pipe, STDERR_FILENO);
    nccl_ranks_run(ranks, 2, settings, wish);
    for (int i = 0; i < 2; i++)
        dprintf(error_pipe, "rank %d: %d %s\n", i, ranks[i].result,
                ranks[i].result ? ranks[i].err.msg : "");
    _exit(0);
}

/* Keeps the beginning. */
static size_t read_to_the_end(int pipe, char ret_told[NCCL_TOLD_BYTES])
{
    char part[4096];
    size_t told = 0;
    for (ssize_t bytes; (bytes = read(pipe, part, sizeof part)) > 0;) {
        size_t room = NCCL_TOLD_BYTES - 1 - told,
               kept = (size_t)bytes < room ? (size_t)bytes : room;
        memcpy(ret_told + told, part, kept);
        told += kept;
    }
    return told;
}

void nccl_ranks_must_end(const struct nccl_wish *wish, const char *settings,
                         char ret_told[NCCL_TOLD_BYTES])
{
    int status, ends[2];
    memset(ret_told, 0, NCCL_TOLD_BYTES);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_to_the_end(wish, settings, ends[1]);
    close(ends[1]);
    size_t told = read_to_the_end(ends[0], ret_told); /* or it would wait for that */
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (told == 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("it ended with status %d, and said: %s", status, ret_told);
}

int nccl_find_library(void **state)
{
    (void)state;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(length > 0);
    path[length] = '\0';
    char *tests = strstr(path, "/tests/agent/");
    assert_non_null(tests);
    strcpy(tests, "/emulation");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1); /* here, where no other thread is yet */
    return setenv(ENV_LIBRARY_PATH, path, 1);
}
