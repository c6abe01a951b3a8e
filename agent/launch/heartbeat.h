/* Signs of life from a rank to its launcher, over a pipe. Each says how long the launcher is to
 * wait for the next one; a rank that lets that pass is stuck where it cannot even end itself (a
 * thread that waits in NCCL or in a driver, a stopped process), and is killed. Who has given no
 * sign is not waited for. */
#ifndef SHOAL_AGENT_LAUNCH_HEARTBEAT_H
#define SHOAL_AGENT_LAUNCH_HEARTBEAT_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in the rank ---- */

struct heartbeat {
    int fd; /* -1: nobody listens */
};

/* The pipe that the launcher has left in the environment. */
struct heartbeat heartbeat_inherit(void);
/* The next sign comes within wait_ms; 0: none comes any more. Never blocks. heartbeat: struct
 * heartbeat. */
void heartbeat_send(void *heartbeat, int64_t wait_ms);

/* ---- in the launcher ---- */

/* Of one rank. */
struct heartbeat_listener {
    int pipe;        /* -1: closed */
    int64_t wait_ms; /* what the last sign said */
    int64_t due_ms;  /* when the next must have come; INT64_MAX: none is waited for */
};

/* *ret_fd: the rank's end, for heartbeat_pass_on(); the caller closes it once the rank has it.
 * Errors: ERR_IO. */
int heartbeat_open(struct heartbeat_listener *ret_listener, int *ret_fd, struct error *err);
/* In the child, between fork and exec. */
void heartbeat_pass_on(int fd);
/* Takes what has come. Never blocks. */
void heartbeat_receive(struct heartbeat_listener *listener, int64_t now_ms);
void heartbeat_close(struct heartbeat_listener *listener);

#ifdef __cplusplus
}
#endif
#endif
