/* Node 0's side of the meeting, as the parts of agent/comm/meeting_server.c share it. Private to
 * these. */
#ifndef SHOAL_AGENT_COMM_MEETING_SERVER_INTERNAL_H
#define SHOAL_AGENT_COMM_MEETING_SERVER_INTERNAL_H

#include "agent/comm/meeting_server.h"
#include "agent/comm/meeting_wire.h"

enum { NO_NODE = -1 };

struct member {
    struct meeting_link link;
    int node;       /* NO_NODE: has not joined */
    bool is_failed; /* it takes no bytes: to be dropped */
    char nonce[RENDEZVOUS_NONCE_BYTES];
    int64_t accepted_ms;
};

/* What was said, so that one that tries again and again is told once. */
struct refusals {
    char last[sizeof((struct error *)NULL)->msg];
    int count;
};

struct meeting_server {
    struct meeting_options options;
    struct roster *roster;
    int listener;
    struct member *members;
    int members_max;
    int64_t beat_ms;          /* when heartbeats were sent last */
    int64_t decide_ms;        /* when the roster is to be asked again */
    int64_t full_until_ms;    /* accept() failed: it is tried again then */
    int64_t ready_ms;         /* since when node 0 waits; -1: it does not */
    bool is_broken;           /* the round that runs: all have heard that their ranks are to end */
    int slots;                /* the run's; 0: none */
    int nodes_max;            /* of a round */
    struct refusals refused;  /* launchers of other versions, as told */
    struct meeting_event own; /* node 0's, to be taken */
};

/* ---- meeting_server.c ---- */

bool meeting_server_has_joined(const struct member *member);
void meeting_server_send_text(struct meeting_server *server, struct member *member,
                              enum meeting_type type, int32_t other, const char *text);
/* Tells all nodes of the round that runs to end their ranks. */
void meeting_server_end_round(struct meeting_server *server, enum roster_verdict how,
                              const char *why);
/* Hangs up. The round that runs ends, if the node is of it. */
void meeting_server_drop(struct meeting_server *server, struct member *member,
                         enum roster_loss how);

/* ---- meeting_server_members.c: who comes, and what they say ---- */

/* 0: none. */
void meeting_server_set_slots(struct meeting_server *server, int slots);
/* The node's ranks have ended. Where they had not met the others', these would wait for them in
 * vain: their round ends. */
void meeting_server_node_ready(struct meeting_server *server, int node,
                               const struct meeting_report *last, const char *name, int64_t now_ms);
void meeting_server_accept(struct meeting_server *server, int64_t now_ms);
void meeting_server_receive(struct meeting_server *server, struct member *member, int64_t now_ms);
#endif
