/* Ranks that are processes, for tests: forked before the test starts a thread, each runs a body and
 * reports its result and error through a pipe. */
#ifndef SHOAL_TESTS_AGENT_PROCESSES_H
#define SHOAL_TESTS_AGENT_PROCESSES_H

#include "tests/free_port.h"
#include "tests/support.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct process;
typedef int process_body(struct process *p, struct error *err);

struct process {
    int rank, size, port;
    uint64_t seed;
    process_body *body;
    void *arg;
    uint64_t digest;    /* what the body leaves here comes back */
    int result, status; /* after process_wait: the body's, and waitpid's */
    struct error err;
    pid_t pid;
    int pipe; /* the report comes through it */
};

static inline void process_start(struct process *p)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        alarm(SUPPORT_PATIENCE_S); /* a hang is a failure, not a wait */
        p->err.code = ERR_NONE;
        p->result = p->body(p, &p->err);
        ssize_t n = write(ends[1], p, sizeof *p);
        _exit(n != (ssize_t)sizeof *p);
    }
    close(ends[1]);
    p->pipe = ends[0];
}

/* Leaves status; result and err as the body reported them, or -1 and ERR_CANCELLED if it was
 * killed. */
static inline void process_wait(struct process *p)
{
    struct process report;
    pid_t pid = p->pid;
    size_t got = 0;
    ssize_t n;
    while (got < sizeof report &&
           (n = read(p->pipe, (char *)&report + got, sizeof report - got)) > 0)
        got += (size_t)n;
    close(p->pipe);
    if (got == sizeof report)
        *p = report;
    else
        p->result = error_set(&p->err, ERR_CANCELLED, "no report");
    assert_int_equal(waitpid(pid, &p->status, 0), pid);
}

/* Starts `size` ranks with the body and waits for all; `all` is zeroed apart from arg. */
static inline void processes_run(struct process *all, int size, process_body *body, uint64_t seed)
{
    int port = free_port();
    for (int i = 0; i < size; i++) {
        all[i].rank = i;
        all[i].size = size;
        all[i].port = port;
        all[i].seed = seed;
        all[i].body = body;
        process_start(&all[i]);
    }
    for (int i = 0; i < size; i++)
        process_wait(&all[i]);
}

#endif
