/* Starts the local ranks of a pod, as torchrun does: runs this program again once per rank, with
 * LOCAL_RANK and the other variables set. The launcher itself trains nothing. It forwards signals,
 * watches the ranks, and restarts all of them when one fails, up to max_restarts times. */
#ifndef SHOAL_AGENT_LAUNCH_LAUNCH_H
#define SHOAL_AGENT_LAUNCH_LAUNCH_H

#include "agent/launch/launch_output.h"
#include "agent/launch/topology.h"
#include "base/error.h"

#include <stdint.h>

/* When one rank fails, the others get SIGTERM, and SIGKILL after so many seconds. */
enum { LAUNCH_GRACE_S = 5 };

/* Where an elastic run's reduction slots come from. */
enum slots_source {
    SLOTS_ASKED,   /* the configuration */
    SLOTS_SAVED,   /* the checkpoint's, and nobody has asked for others */
    SLOTS_DEFAULT, /* neither: those of a round that other launchers were in take their place */
};

struct launch_options {
    const struct topology *topology;
    char *const *argv;       /* of the ranks: this program's own */
    int max_restarts;        /* 0: none */
    double restart_delay_s;  /* between the end of a round and the next */
    double shrink_after_s;   /* of an elastic run: how long to wait for nodes that are gone */
    double join_timeout_s;   /* likewise: how long to wait for fewer than it needs */
    int64_t stopped_most_ms; /* all local ranks may be stopped, if others wait; 0: for any time */
    int64_t reduction_slots; /* likewise: at most so many ranks take part; 0: no limit */
    enum slots_source slots_are;
    bool slots_are_refused;           /* memory.cpu_offload, which has no use for them */
    bool names_endpoint;              /* print MASTER_ADDR and MASTER_PORT on stderr, as torchrun */
    bool is_verbose;                  /* print every failure on stderr; false: only ranks that a
                                         signal killed */
    struct launch_output_spec output; /* of the ranks */
    /* Tells whoever reads why a pod has ended: of the cause and, below it, the rank's last lines.
     * NULL: nobody reads it. */
    void (*explain_end)(const char *why, const char *lines);
};

/* How many GPUs a rank started from here could open. A child process counts them: a CUDA driver
 * starts threads, and the launcher must have none. 0: none. */
int launch_count_gpus(void);

/* Runs argv once per local rank and waits for all ranks. The ranks die with the launcher. Must be
 * called before any thread starts.
 *
 * Signals: SIGTERM, SIGINT and SIGUSR1 are forwarded to every rank; one that is stopped gets
 * SIGCONT to handle them.
 *
 * Failures: when a rank fails, the launcher ends the others and starts a new round. In it,
 * SHOAL_RESTART_COUNT is one higher and SHOAL_RUN_ID the same (the topology's, or one made here).
 * In an elastic run (topology.h) the launchers meet before each round, at node 0's, and it may have
 * other nodes than the one before. Then ranks, world size and port are the round's, and the restart
 * is not one of max_restarts.
 * In any other run a restart is not one of them, either, that follows a peer's stop
 * (stop_signs_name_peer()), or the loss of a peer whose launcher then comes back as another one.
 * Once ranks have met, those of a later round wait for lost peers longer (ENV_ROUNDS_MET).
 * No round follows SIGTERM or SIGINT, nor what a restart cannot mend: EXIT_CONFIG, and what
 * rank_exit_would_repeat() (root_cause.h) names.
 * A rank whose heartbeats stop (heartbeat.h) is killed and counts as EXIT_RETRYABLE. So do all of
 * the pod that stay stopped, if stopped_ranks_may_end() (stopped_ranks.h): stopped_most_ms is set,
 * a restart is left, and ranks of other pods wait.
 *
 * *ret_exit_code: 0 if all ranks ended with 0, else the root cause's in the last round (128 + n for
 * signal n). The root cause is the first rank that failed for a reason of its own: one that exits
 * with EXIT_RETRYABLE or EXIT_TERMINATED only followed another. explain_end hears of
 * a root cause that is here, unless the rank has told the kubelet itself. Errors:
 * ERR_CONFIG for the output's options, ERR_IO if a process cannot be started. */
int launch_local_ranks(const struct launch_options *options, int *ret_exit_code, struct error *err);
#endif
