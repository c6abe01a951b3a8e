/* The messages between a rank and rank 0's rendezvous server. All have one size, so that a stream
 * of them needs no parser. Both ends are the same build on the same architecture; a message with
 * another magic number is not from us. Pure: sockets are rendezvous's and rendezvous_server's. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_WIRE_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_WIRE_H

#include "agent/comm/store.h"

#include <stdint.h>

#define WIRE_MAGIC 0x53484c34 /* "SHL4"; changes with the protocol */

/* The server sends a challenge to each new connection. The process answers with its rank and the
 * proof that it knows the run's secret. The server hangs up on a process without that proof. Until
 * all ranks have joined, the others hear only heartbeats. */
enum wire_type {
    WIRE_CHALLENGE, /* text = nonce (rendezvous_proof.h) */
    WIRE_JOIN,      /* to the server: number = rank, size, key = proof, text = job id */
    WIRE_WELCOME,   /* all ranks are here */
    WIRE_AGAIN,     /* not now, or not here: text says why; try again */
    WIRE_REFUSED,   /* the ranks contradict each other: text says how; to all of them */
    WIRE_SET,       /* to the server: number = request, key, text = value */
    WIRE_GET,       /* to the server: number = request, size = how long to wait in ms, key */
    WIRE_REPLY,     /* number = request, size = an error_code, text = value or message */
    WIRE_BEAT,      /* heartbeat, both ways; before the welcome, text says who is missing; to the
                       server: what the rank does (rendezvous_health.h) */
    WIRE_INSPECT, /* number = rank that hangs, size = its pid, text = how, key "ends": and is to be
                     ended; to it, or to another of its pod that looks at it */
    WIRE_LOST,    /* text: which rank, and how that showed */
    WIRE_FAILED,  /* to the server: this rank leaves because of text; a loss to the others */
    WIRE_GOODBYE, /* the sender leaves in order; both ways */
};

/* How long a side that leaves waits for the others to hang up, so that they read its last message:
 * closing a socket with unread bytes resets it, and the peer loses what it has not read. Long
 * enough for a machine with far more processes than cores; a stopped rank costs it once. */
#define FAREWELL_MS 3000

struct wire_message {
    uint32_t magic;
    int32_t type;
    int32_t number;
    int32_t size;
    char key[STORE_KEY_MAX];
    char text[STORE_VALUE_MAX];
};

enum wire_sender { WIRE_FROM_SERVER, WIRE_FROM_RANK };

/* Checks the message that came from such a sender: magic number, a type that this sender may send,
 * an error code in a reply, texts that end. ERR_INPUT says what is wrong; *message is unchanged. */
int wire_check(const struct wire_message *message, enum wire_sender sender, struct error *err);
#endif
