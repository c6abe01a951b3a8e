/* Heartbeats from a rank to its launcher, over a pipe. Each says within how many milliseconds the
 * next one comes, and what the rank does. A rank whose heartbeat is overdue cannot even end itself:
 * a thread of it waits in NCCL or in a driver, or the process is stopped. The launcher kills it. A
 * rank that has never sent a heartbeat has no deadline. */
#ifndef SHOAL_AGENT_LAUNCH_HEARTBEAT_H
#define SHOAL_AGENT_LAUNCH_HEARTBEAT_H

#include "base/error.h"

#include <stdint.h>

/* ---- in the rank ---- */

struct heartbeat {
    int fd; /* the pipe's write end; -1: no launcher listens */
};

/* The pipe that heartbeat_set_inheritable() put into the environment: once, before any thread
 * starts. */
struct heartbeat heartbeat_inherit(void);
/* The next heartbeat comes within wait_ms; 0: no more come. doing: for people, cut off behind
 * HEARTBEAT_DOING_BYTES - 1; "": not known. Never blocks. */
enum { HEARTBEAT_DOING_BYTES = 192 };
void heartbeat_send(const struct heartbeat *heartbeat, int64_t wait_ms, const char *doing);

/* ---- in the launcher ---- */

/* The read end, for one rank. */
struct heartbeat_listener {
    int pipe;                          /* -1: closed */
    int64_t wait_ms;                   /* the last heartbeat's */
    int64_t due_ms;                    /* when the next must have come; INT64_MAX: no deadline */
    char doing[HEARTBEAT_DOING_BYTES]; /* what the rank did when it sent the last; "": not known */
};

/* *ret_fd: the write end, for heartbeat_set_inheritable(). The caller closes it after the fork.
 * Errors: ERR_IO. */
int heartbeat_open(struct heartbeat_listener *ret_listener, int *ret_fd, struct error *err);
/* Hands the write end to the program that this process executes next: called in the child, between
 * fork and exec. */
void heartbeat_set_inheritable(int fd);
/* Reads all heartbeats in the pipe. Never blocks. */
void heartbeat_receive(struct heartbeat_listener *listener, int64_t now_ms);
void heartbeat_close(struct heartbeat_listener *listener);
#endif
