/* One container as a process of this machine, for the local backend. It plays the container
 * runtime: what belongs to a container ends with it, and nothing outlives the run, however that
 * ends. Knows argument lists, environments and signals; not pods, restarts or time.
 *
 * Each container gets a guard: a fork of this program in a session of its own that is the
 * container's parent and the subreaper of everything it starts. When the container's first process
 * ends, the guard kills what it left and exits with the same code. When this program dies, by
 * SIGKILL too, the kernel signals the guards (PR_SET_PDEATHSIG), which kill their trees. When a
 * guard is killed, the kernel kills the container's first process. Its other processes come to this
 * program, a subreaper as well (local_process_adopt). */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_PROCESS_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct local_process {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up on the PATH of env */
    const char *const *env;  /* "NAME=value", NULL-terminated: the whole environment */
    const char *directory;   /* working directory, absolute; NULL: ours */
    int output;              /* open file for stdout and stderr; stdin is /dev/null */
    /* Removed by a guard that outlives us; or NULL: */
    const char *links_path;  /* a directory of links */
    const char *socket_path; /* with its directory */
};

/* 0 if the directory and the program are there, an error with the reason if not. */
int local_process_check(const struct local_process *p, struct error *err);

/* Starts the process; *ret_pid is its guard's: reap it with waitpid. Returns once the program is
 * executing, so a wrong program is an error here and not an exit code later. The signals of the
 * process are unblocked and at their defaults. */
int local_process_start(const struct local_process *p, pid_t *ret_pid, struct error *err);

void local_process_terminate(pid_t guard); /* SIGTERM to the container's first process */
void local_process_kill(pid_t guard);      /* SIGKILL to all of its processes */

/* The exit code that a container runtime reports for a wait status: 128 + n for signal n. */
int local_process_exit_code(int wait_status);

/* Makes this program the last resort for orphans, for the rest of its life. */
int local_process_adopt(struct error *err);

/* Kills and reaps every child that is no guard: what a killed guard left. */
void local_process_kill_orphans(bool (*is_guard)(pid_t pid, void *context), void *context);
#endif
