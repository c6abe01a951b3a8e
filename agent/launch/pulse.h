/* Signs of life from a rank to its launcher, over a pipe. Each says how long the launcher is to
 * wait for the next one; a rank that lets that pass is stuck where it cannot even end itself (a
 * thread that waits in NCCL or in a driver, a stopped process), and is killed. Who has given no
 * sign is not waited for. */
#ifndef SHOAL_AGENT_PULSE_H
#define SHOAL_AGENT_PULSE_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- in the rank ---- */

struct pulse {
    int fd; /* -1: nobody listens */
};

/* The pipe that the launcher has left in the environment. */
struct pulse pulse_take(void);
/* The next sign comes within wait_ms; 0: none comes any more. Never blocks. pulse: struct pulse. */
void pulse_give(void *pulse, int64_t wait_ms);

/* ---- in the launcher ---- */

/* Of one rank. */
struct pulse_listener {
    int pipe;        /* -1: closed */
    int64_t wait_ms; /* what the last sign said */
    int64_t due_ms;  /* when the next must have come; INT64_MAX: none is waited for */
};

/* *ret_fd: the rank's end, for pulse_leave(); the caller closes it once the rank has it. Errors:
 * ERR_IO. */
int pulse_open(struct pulse_listener *ret_listener, int *ret_fd, struct error *err);
/* In the child, between fork and exec. */
void pulse_leave(int fd);
/* Takes what has come. Never blocks. */
void pulse_listen(struct pulse_listener *listener, int64_t now_ms);
void pulse_close(struct pulse_listener *listener);

#ifdef __cplusplus
}
#endif
#endif
