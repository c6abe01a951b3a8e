#include "agent/health/rank_inspection.h"

#include "agent/launch/last_words.h"
#include "agent/launch/thread_stacks.h"
#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether one launcher has started that process and this one. */
static bool is_sibling(int pid)
{
    char path[32], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[bytes] = '\0';
    const char *after = strrchr(text, ')'); /* "PID (NAME) STATE PARENT ...": proc(5) */
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 && parent == getppid();
}

/* Whether that process was started as this rank. */
static bool was_started_as(int pid, int rank)
{
    char path[32], expected[32];
    auto_free char *variable = NULL;
    size_t bytes = 0;
    bool is_it = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    snprintf(expected, sizeof expected, ENV_RANK "=%d", rank);
    FILE *file = fopen(path, "re");
    while (file && !is_it && getdelim(&variable, &bytes, '\0', file) > 0)
        is_it = strcmp(variable, expected) == 0;
    if (file)
        fclose(file);
    return is_it;
}

void rank_inspection_carry_out(const struct rendezvous_inspection *i, int self)
{
    bool is_self = i->rank == self;
    if (is_self)
        thread_stacks_print(i->rank);
    else
        thread_stacks_show(i->rank, i->pid);
    /* The number comes from a report that is a second old, and may be of another PID namespace:
     * ranks of one machine may be in containers of their own. */
    if (!i->ends || (!is_self && !(is_sibling(i->pid) && was_started_as(i->pid, i->rank))))
        return;
    log_error("rank %d is killed, so that all ranks start again (runtime.hang_action=restart): %s",
              i->rank, i->why);
    if (is_self) {
        struct error words;
        error_set(&words, ERR_TIMEOUT, "it %s", i->why);
        last_words_send(&words, true);
    }
    /* What hangs does not end by itself; SIGKILL also ends what is stopped. */
    kill(is_self ? getpid() : (pid_t)i->pid, SIGKILL);
}
