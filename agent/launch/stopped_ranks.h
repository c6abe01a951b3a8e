/* When a launcher ends ranks that stand still, stopped by a signal. Pure: time is an argument.
 *
 * A stopped rank is named by rank 0, and ended by another rank of its pod (agent/health). Where all
 * ranks of a pod are stopped, none is there to do so, and to rank 0 the pod looks like a machine
 * that is away. Only their launcher can tell: the kernel reports a stopped child to its parent
 * (waitpid(2), WUNTRACED), unless a debugger has stopped it.
 *
 * Time counts only while the launcher is awake: a machine that pauses, or whoever stops the
 * launcher as well, ends nothing. */
#ifndef SHOAL_AGENT_LAUNCH_STOPPED_RANKS_H
#define SHOAL_AGENT_LAUNCH_STOPPED_RANKS_H

#include <stdbool.h>
#include <stdint.h>

enum { STOPPED_RANKS_LOOK_MS = 1000 }; /* while they are stopped: between two looks */

/* What a launcher knows of its ranks and of the run. */
struct stopped_ranks_view {
    int running, stopped; /* ranks of the pod, and how many of these are stopped */
    int elsewhere;        /* ranks of other pods, which wait for them */
    int restarts_left;    /* 0: who is ended would not start again */
    bool is_ending;       /* after a failure, which ends all in time, or as asked, which made them
                             go on */
    bool hang_is_restart; /* runtime.hang_action=restart */
};

/* Whether it may end them, once that has lasted. */
bool stopped_ranks_may_end(const struct stopped_ranks_view *view);

struct stopped_ranks {
    bool were_stopped;         /* at the last look */
    int64_t looked_ms, for_ms; /* if so: when that was, and for how long they have been by then */
};

/* are_stopped: all of the pod that run, and stopped_ranks_may_end(). Whether they have been for
 * more than most_ms. A look counts for twice STOPPED_RANKS_LOOK_MS at most, however long after the
 * last one it comes. */
bool stopped_ranks_look(struct stopped_ranks *s, bool are_stopped, int64_t now_ms, int64_t most_ms);
#endif
