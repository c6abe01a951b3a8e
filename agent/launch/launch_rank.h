/* One local rank and how it is started: environment, pipes, fork, exec. Private to
 * agent/launch/launch.c. */
#ifndef SHOAL_AGENT_LAUNCH_LAUNCH_RANK_H
#define SHOAL_AGENT_LAUNCH_LAUNCH_RANK_H

#include "agent/launch/heartbeat.h"
#include "agent/launch/launch.h"
#include "agent/launch/launch_environment.h"
#include "agent/launch/root_cause.h"

#include <signal.h>
#include <sys/types.h>

struct local_rank {
    pid_t pid;       /* 0: ended */
    bool is_stopped; /* by a signal */
    struct heartbeat_listener heartbeat;
    int words;               /* pipe of its last words; -1: none */
    struct output_tail tail; /* of what it wrote */
    struct rank_exit exit;   /* pid: its own, from its exit to find_root_cause(); else 0 */
};

struct launch_rank_options {
    const struct launch_options *launch;
    const struct launch_identity *identity;
    struct launch_position position;
    int memory;           /* which outlives the rank; 0: none */
    int note;             /* likewise (rank_note.h) */
    const sigset_t *mask; /* the rank's */
};

/* Runs the launcher's argv as the rank, which dies with the launcher. Errors: ERR_IO. */
int launch_rank_start(const struct launch_rank_options *options, struct local_rank *rank,
                      struct launch_stream ret_streams[2], struct error *err);
#endif
