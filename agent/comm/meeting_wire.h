/* The messages between the launchers of an elastic run and node 0's, which keeps the roster. All
 * have one size. Both ends are the same build on the same architecture; a message with another
 * magic number is not from us. Private to meeting.c and meeting_server.c. */
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
    MEETING_READY,   /* the node's ranks have ended: it waits for the next round */
    MEETING_GOODBYE, /* the sender leaves. To the server: other = a roster_loss. From it: the run is
                        done */
    MEETING_BEAT,    /* heartbeat, both ways; from the server text says who is missing */
    MEETING_BEGIN,   /* number = node's number in the round, size = nodes, other = rank 0's port,
                        text = what has changed, proof "changed": so it has */
    MEETING_END,     /* the ranks are to end; text = why, other = a roster_verdict: REGROUP at a
                        step's end, else at once, as the round is broken */
    MEETING_AGAIN,   /* not now: text says why; try again */
    MEETING_REFUSED, /* never: text says why */
    MEETING_TYPES,
};

struct meeting_message {
    uint32_t magic;
    int32_t type;
    int32_t number, size, other;
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

/* Fills in the magic number. A peer that accepts no bytes for MEETING_SEND_MS is an error. */
int meeting_send(const struct meeting_link *link, struct meeting_message *message,
                 struct error *err);
/* Reads what is there: 1 if link->in is a whole message, 0 if not yet, -1 if the connection has
 * ended or is not ours. Never blocks. */
int meeting_receive(struct meeting_link *link, int64_t now_ms, struct error *err);
/* What is wrong with a whole message; exposed for tests. */
int meeting_check(const struct meeting_message *message, struct error *err);
void meeting_hang_up(struct meeting_link *link); /* also one without a connection */
#endif
