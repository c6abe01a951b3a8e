/* The messages between the launchers of an elastic run and node 0's, which keeps the roster. All
 * have one size, and begin with a header that names the sender's version: two versions do not meet.
 * Both ends are of the same architecture. Private to meeting.c and meeting_server.c. */
#ifndef SHOAL_AGENT_COMM_MEETING_WIRE_H
#define SHOAL_AGENT_COMM_MEETING_WIRE_H

#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/roster.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { MEETING_TEXT_BYTES = 1024, MEETING_SEND_MS = 1000 };

/* The server sends a challenge to each new connection, and hangs up on who does not know the run's
 * secret. */
enum meeting_type {
    MEETING_CHALLENGE, /* text = nonce */
    MEETING_JOIN,    /* number = node, size = its ranks, other = nodes of the round that it was in,
                        proof, name = of its pod, text = job id */
    MEETING_READY,   /* the node's ranks have ended: it waits for the next round. number = restarts
                        that it has left, other = whether its ranks had met the others' */
    MEETING_GOODBYE, /* the sender leaves. To the server: other = a roster_loss. From it: the run is
                        done */
    MEETING_BEAT,    /* heartbeat, both ways; from the server text says who is missing */
    MEETING_BEGIN,   /* number = node's number in the round, size = nodes, other = rank 0's port,
                        text = what has changed, proof "changed": so it has */
    MEETING_END,     /* the ranks are to end; text = why, other = a roster_verdict: REGROUP at a
                        step's end, else at once, as the round is broken */
    MEETING_LEAVE,   /* no round follows for the node; text says why */
    MEETING_AGAIN,   /* not now: text says why; try again */
    MEETING_REFUSED, /* never: text says why */
    MEETING_TYPES,
};

enum { MEETING_VERSION_BYTES = 24 };

/* The same in all versions, the next ones included: never change it. Each end sends one before it
 * needs to understand the other: so both learn which versions do not meet, and say so. */
struct meeting_header {
    uint32_t magic;                      /* "SHOL": a launcher */
    uint32_t protocol;                   /* of what follows; changes with it */
    char version[MEETING_VERSION_BYTES]; /* the sender's SHOAL_VERSION */
};

struct meeting_message {
    struct meeting_header header;
    int32_t type;
    int32_t number, size, other;
    int32_t slots; /* JOIN: of the round that the node was in, BEGIN: of this one; 0: none */
    char proof[RENDEZVOUS_PROOF_BYTES];
    char name[ROSTER_NAME_BYTES];
    char text[MEETING_TEXT_BYTES];
};

/* One end of a connection. */
struct meeting_link {
    int fd; /* -1: none */
    int64_t heard_ms;
    struct meeting_message in; /* the first in_bytes of it have arrived */
    size_t in_bytes;
};

/* Fills in the header. A peer that accepts no bytes for MEETING_SEND_MS is an error. */
int meeting_send(const struct meeting_link *link, struct meeting_message *message,
                 struct error *err);
/* Reads what is there: 1 if link->in is a whole message, 0 if not yet, -1 if the connection has
 * ended or is not ours. Never blocks. Errors: those of meeting_check(), ERR_PEER. */
int meeting_receive(struct meeting_link *link, int64_t now_ms, struct error *err);
/* What is wrong with a whole message; exposed for tests. Errors: ERR_UNSUPPORTED names both
 * versions, if the sender has another one; ERR_INPUT. */
int meeting_check(const struct meeting_message *message, struct error *err);
void meeting_hang_up(struct meeting_link *link); /* also one without a connection */
#endif
