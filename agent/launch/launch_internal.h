/* A launcher's rounds, as the parts of agent/launch/launch.c share them. Private to these. */
#ifndef SHOAL_AGENT_LAUNCH_LAUNCH_INTERNAL_H
#define SHOAL_AGENT_LAUNCH_LAUNCH_INTERNAL_H

#include "agent/comm/meeting.h"
#include "agent/launch/launch.h"
#include "agent/launch/launch_rank.h"
#include "agent/launch/repeated_end.h"
#include "agent/launch/restart_budget.h"
#include "agent/launch/stopped_ranks.h"

#include <poll.h>

/* An elastic run's; all zero in any other. */
struct launch_nodes {
    struct meeting *meeting; /* NULL: the number of nodes is fixed */
    struct meeting_event event;
    bool has_told; /* the launcher waits for a round, and has said for whom */
    int slots;     /* the run's; 0: none */
    char name[TOPOLOGY_HOST_BYTES];
};

struct round {
    const struct launch_options *options; /* a copy, whose topology is `place` */
    struct topology place;                /* of an elastic run: this round's */
    struct launch_nodes nodes;
    struct launch_identity identity;
    int attempt;                   /* rounds before this one */
    struct restart_budget budget;  /* spent: fewer than attempts where nodes came and went */
    bool have_met;                 /* this round's ranks, with the others' */
    int new_launchers;             /* as last_words.h has it, of this round's ranks */
    struct stop_signs stop_signs;  /* of this round's ranks */
    int port;                      /* MASTER_PORT */
    struct local_rank *ranks;      /* [local_size] */
    int *memory;                   /* [local_size], which outlive the ranks; 0: none */
    int *notes;                    /* [local_size], likewise (rank_note.h) */
    struct repeated_end ends;      /* of the rounds whose cause was here */
    struct launch_stream *streams; /* [2 local_size] */
    struct pollfd *fds; /* [1 + 3 local_size]: the signals', the streams', the heartbeats'; then
                           the meeting's */
    int count, alive;
    struct stopped_ranks stopped;
    int exit_code;          /* of the root cause; 0: no rank has failed yet */
    struct rank_exit cause; /* if exit_code is not 0 */
    int64_t cause_ms;       /* when it failed; wall clock */
    int64_t deadline_ms;    /* when the ranks that are left are killed; 0: no rank has failed yet */
    bool is_killed;         /* and they were */
    int stop_signal;        /* what asked for the end; 0: nothing did */
    bool fails_asked;       /* the first rank failed after that */
};

/* ---- launch.c ---- */

void launch_signal_all(const struct round *round, int number);
/* Waits for the next event, at most until `until_ms`. */
void launch_wait_event(struct round *round, int signals, int64_t until_ms);

/* ---- launch_exits.c: how ranks end, and which of them is why the round does ---- */

/* Takes the exits, stops and continuations since the last call. The first failure ends the other
 * ranks. */
void launch_reap_ranks(struct round *round);
/* No rank runs any more: the round's exit code is final, and where it ended is noted. */
void launch_settle_exit(struct round *round);

/* ---- launch_restart.c: what follows a round ---- */

/* Whether the restart that follows the round's end is not one of max_restarts. In an elastic run
 * the next round shows it. */
bool launch_is_free(const struct round *round);
/* A signal has asked for the end. What failed before and would have started again is not why the
 * launcher ends: its exit code says that it was asked to. */
void launch_end_as_asked(struct round *round);
/* Whether another round follows. Says so, and what it costs. */
bool launch_begin_restart(struct round *round, int signals);

/* ---- launch_watch.c ---- */

/* Kills ranks whose heartbeat is overdue, and all if they are stopped for too long. Returns when to
 * look again. */
int64_t launch_kill_stuck(struct round *round, int64_t now_ms);

/* ---- launch_words.c: what a round says on stderr ---- */

/* A local rank gives no sign of life, and is killed: what it did last, and what the kernel says of
 * its threads. */
void launch_print_stuck(const struct round *round, int local_rank);
/* A local rank is stopped, as all of them are, and is killed. */
void launch_print_stopped(const struct round *round, int local_rank);
/* Which rank failed, where, when and why. The last lines that it wrote, if it has not told why. */
void launch_print_failure(const struct round *round);
/* No rank starts again: tells the kubelet what launch_print_failure() has said. */
void launch_tell_kubelet(const struct round *round);
/* No restart is left: says so, and in which step the run ends again and again. */
void launch_print_no_restart(const struct round *round);
/* The cause is told where it was. Where a rank only lost a peer, another launcher tells it. */
void launch_print_end(const struct round *round, bool restarts);

/* ---- launch_nodes.c: an elastic run, whose launchers meet before each round ---- */

/* For a topology that is not elastic it does nothing, as the others. */
int launch_nodes_open(struct round *round, struct error *err);
void launch_nodes_close(struct round *round);
/* Waits until a round begins, and finds this node's place in it: true. False: none follows, and
 * round->exit_code is the launcher's. */
bool launch_nodes_gather(struct round *round, int signals);
/* What the meeting has to say while ranks run or are waited for. */
void launch_nodes_handle(struct round *round);
#endif
