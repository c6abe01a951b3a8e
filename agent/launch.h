/* Starts the local ranks of a pod, as torchrun does: this program again, once per rank, with
 * LOCAL_RANK and its kin set. The launcher itself trains nothing: it passes signals on and watches.
 */
#ifndef SHOAL_AGENT_LAUNCH_H
#define SHOAL_AGENT_LAUNCH_H

#include "agent/topology.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds that ranks have to end after one of them failed, before they are killed. */
enum { LAUNCH_GRACE_S = 5 };

/* Runs argv (the program's own) once per local rank and waits for all. SIGTERM, SIGINT and SIGUSR1
 * go to every rank. When one fails the others are asked to end, then killed. *ret_exit_code: 0 if
 * all ended with 0, else that of the first to fail (a signal n: 128 + n). The ranks die with the
 * launcher. Must be called before any thread is started. Errors: ERR_IO if a process cannot be
 * started. */
int launch_local_ranks(const struct topology *topology, char *const *argv, int *ret_exit_code,
                       struct error *err);

#ifdef __cplusplus
}
#endif
#endif
