/* Starts the local ranks of a pod, as torchrun does: this program again, once per rank, with
 * LOCAL_RANK and its kin set. The launcher itself trains nothing: it passes signals on, watches,
 * and starts all ranks again when one failed, as often as it may. */
#ifndef SHOAL_AGENT_LAUNCH_H
#define SHOAL_AGENT_LAUNCH_H

#include "agent/launch/launch_output.h"
#include "agent/launch/topology.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds that ranks have to end after one of them failed, before they are killed. */
enum { LAUNCH_GRACE_S = 5 };

struct launch_options {
    const struct topology *topology;
    char *const *argv;                /* the program's own, for the ranks */
    int max_restarts;                 /* 0: none */
    double restart_delay_s;           /* between a round's end and the next */
    bool is_verbose;                  /* tell the meeting place and every failure on stderr;
                                           else only that a rank died of a signal */
    struct launch_output_spec output; /* of the ranks */
};

/* GPUs that a rank started from here could open, counted by a process of its own: a driver starts
 * threads, and the launcher may have none. 0 if there are none. */
int launch_count_gpus(void);

/* Runs argv once per local rank and waits for all. SIGTERM, SIGINT and SIGUSR1 go to every rank.
 * When one fails the others are asked to end, then killed, and a new round of all begins: the ranks
 * meet anew, with SHOAL_RESTART_COUNT one higher and the same SHOAL_RUN_ID: the topology's, or one
 * made here for a run that begins here. There is none after a signal to end, nor after
 * EXIT_CONFIG, which trying again does not mend. One that is stuck (heartbeat.h) is killed, and
 * counts as EXIT_RETRYABLE. *ret_exit_code: 0 if all ended with 0, else that of the first to fail
 * in the last round (a signal n: 128 + n); one that only lost a peer or was asked to end
 * (EXIT_RETRYABLE, EXIT_TERMINATED) stands back for one with a reason of its own, though that one
 * ended later. The ranks die with the launcher. Must be called before any thread is started.
 * Errors: ERR_CONFIG for the output's, ERR_IO if a process cannot be started. */
int launch_local_ranks(const struct launch_options *options, int *ret_exit_code, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
