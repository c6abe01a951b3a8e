/* Where the launchers of an elastic run meet before each round of their ranks: at node 0's, which
 * listens at the endpoint that all of them know for as long as it lives. It keeps the roster
 * (roster.h) and tells each round's size and place, as pods' variables cannot change. A launcher
 * that was in a round waits for node 0 however long: what its memory holds would go with it. Not
 * thread-safe; for a loop that waits in poll(). */
#ifndef SHOAL_AGENT_COMM_MEETING_H
#define SHOAL_AGENT_COMM_MEETING_H

#include "agent/comm/roster.h"
#include "base/error.h"

#include <poll.h>

enum { MEETING_BEAT_MS = 1000, MEETING_SILENCE_MS = 15000, MEETING_NEWS_BYTES = 1024 };

struct meeting_options {
    const char *host; /* node 0's, as all know it */
    int port;
    int node;                     /* this launcher's; 0 keeps the roster */
    int local_size;               /* its ranks: each node has as many */
    struct roster_options roster; /* node 0's count */
    int slots;                    /* likewise: no more ranks take part; 0: as many as may */
    bool slots_are_default; /* those of the round that others were in before take their place */
    const char *name;       /* of this pod, for people */
    const char *job_id, *secret; /* as in struct rendezvous_options */
    int64_t patience_ms;         /* before the first round: how long to wait for node 0, or node 0
                                    for enough to begin */
    int (*free_port)(int *ret_port, struct error *err); /* for rank 0 of a round */
};

enum meeting_what {
    MEETING_NOTHING,
    MEETING_ROUND_BEGINS,
    MEETING_ROUND_ENDS,   /* the ranks are to end at a step's end */
    MEETING_ROUND_BROKEN, /* a node of the round was lost: so are its ranks */
    MEETING_RUN_DONE,  /* another launcher's ranks came to the end of the run; again when ready */
    MEETING_DISMISSED, /* no round follows for this node, whose ranks have failed: news says why */
    MEETING_FAILED,    /* `err` says why */
};

struct meeting_event {
    enum meeting_what what;
    int rank, nodes;  /* of a round that begins: this node's number in it, and how many there are */
    int port;         /* rank 0's */
    int slots;        /* the run's; 0: none */
    bool has_changed; /* nodes left or came since the round before */
    char news[MEETING_NEWS_BYTES]; /* what has changed, or why a round ends; "": nothing */
    struct error err;
};

struct meeting;

/* Texts are used until meeting_close(). Errors: those of listen_tcp if node 0 cannot listen. */
int meeting_open(const struct meeting_options *options, struct meeting **ret_meeting,
                 struct error *err);

/* Why this launcher goes, for those that stay. */
enum meeting_end {
    MEETING_ASKED_TO_END, /* nobody waits for it */
    MEETING_MAY_RETURN,   /* it failed; it may be started again */
    MEETING_ALL_DONE,     /* the run is: who waits need not any more */
};
void meeting_close(struct meeting *meeting, enum meeting_end why); /* NULL-safe */

/* How a round ended at a node. */
struct meeting_report {
    int restarts_left; /* without one the node takes part only where nodes have come or gone */
    bool have_met;     /* its ranks had joined the others' */
};

/* This node's ranks have ended, or not begun (last: NULL): it waits for the next round. */
void meeting_ready(struct meeting *meeting, const struct meeting_report *last);

/* What poll() is to wait for: at most meeting_polls_most() entries; *ret_until_ms: and how long. */
int meeting_polls_most(const struct meeting *meeting);
nfds_t meeting_polls(const struct meeting *meeting, struct pollfd *ret_polls,
                     int64_t *ret_until_ms);
/* Reads what has come and does what is due. Never blocks but for a connect() while no ranks of this
 * node run. *ret_event: what happened, one at a time. */
void meeting_handle(struct meeting *meeting, struct meeting_event *ret_event);
/* "1 of 2 nodes is here; missing: node 1", or why node 0 is not reached; "" if nothing is known. */
const char *meeting_waits_for(const struct meeting *meeting);
#endif
