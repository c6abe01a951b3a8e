/* Signals that ask a rank to stop: SIGTERM (Kubernetes deletes the pod, or the launcher ends its
 * ranks), SIGINT (Ctrl-C) and SIGUSR1. Process-wide. */
#ifndef SHOAL_AGENT_LAUNCH_STOP_H
#define SHOAL_AGENT_LAUNCH_STOP_H

#include "base/error.h"

#include <stdbool.h>

/* Until stop_install_handlers() SIGTERM and SIGINT end this process, as there is nothing to save
 * yet, also where it is the first one of a container: that has no signals' default actions. */
void stop_end_at_once(void);

/* From now on such a signal only sets a flag. */
void stop_install_handlers(void);

/* Whether such a signal has come. ctx is not used: it makes this a trainer's callback. */
bool stop_requested(void *ctx);

/* Whether one has come from another process than the launcher, which is this one's parent. */
bool stop_requested_by_others(void);

/* The process's exit code for the error; 128 + SIGINT after Ctrl-C. */
int stop_exit_code(const struct error *err);

/* For an error that every rank has (err->shared): only the first rank of each pod logs it. Its exit
 * makes the launcher signal the others. If another rank exited first, the launcher would end the
 * first one before it has logged. So the others wait here for that signal, at most 5 seconds. */
void stop_await_first_rank(void);
#endif
