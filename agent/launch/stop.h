/* Signals that ask a rank to stop: SIGTERM (a pod that is deleted, a launcher whose other rank
 * failed), SIGINT (Ctrl-C) and SIGUSR1. Process-wide. */
#ifndef SHOAL_AGENT_STOP_H
#define SHOAL_AGENT_STOP_H

#include "base/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From here on such a signal only asks; before, there is nothing to save and it simply ends the
 * process. */
void stop_listen(void);

/* Whether one has come. ctx is not used: it makes this a trainer's callback. */
bool stop_asked(void *ctx);

/* The process's exit code for the error: a person who stops the run by Ctrl-C is told so by it. */
int stop_exit_code(const struct error *err);

/* What all ranks would say alike, the first of each pod says. Its end makes the launcher signal the
 * others; if one of them went before it, the launcher would cut the first one short. So the others
 * wait here for that signal, at most 5 seconds. */
void stop_await_first_rank(void);

#ifdef __cplusplus
}
#endif
#endif
