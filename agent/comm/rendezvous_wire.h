/* The messages between rendezvous and rendezvous_server: all of one size, so that a stream of them
 * needs no parser. Both ends are the same build on the same architecture; what begins with another
 * magic number is not from us. */
#ifndef SHOAL_AGENT_RENDEZVOUS_WIRE_H
#define SHOAL_AGENT_RENDEZVOUS_WIRE_H

#include "agent/comm/store.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIRE_MAGIC 0x53484c33 /* "SHL3"; changes with the protocol */

/* Who connects is sent a challenge, and nothing else before it has joined: with its rank and the
 * proof that it knows the run's secret. It is told nothing but signs of life then until all have
 * joined. Who has no proof is hung up on without a word. */
enum wire_type {
    WIRE_CHALLENGE, /* text = nonce (rendezvous_proof.h) */
    WIRE_JOIN,      /* to the server: number = rank, size, key = proof, text = job id */
    WIRE_WELCOME,   /* all ranks are here */
    WIRE_AGAIN,     /* not now, or not here: text says why; try again */
    WIRE_REFUSED,   /* the ranks contradict each other: text says how; to all of them */
    WIRE_SET,       /* to the server: number = request, key, text = value */
    WIRE_GET,       /* to the server: number = request, size = how long to wait in ms, key */
    WIRE_REPLY,     /* number = request, size = an error_code, text = value or message */
    WIRE_BEAT,      /* a sign of life, both ways; before the welcome, text says who is missing */
    WIRE_LOST,      /* text: which rank, and how that showed */
    WIRE_FAILED,    /* to the server: I leave because text; for the others that is a loss */
    WIRE_GOODBYE,   /* I leave in order; both ways */
};

/* How long one who leaves waits for the others to hang up, so that what was said last is heard: a
 * socket closed before is reset, and what lies unread at the other end is lost. Long enough for a
 * machine with far more processes than cores; a rank that is stopped costs it once. */
#define FAREWELL_MS 3000

struct wire_message {
    uint32_t magic;
    int32_t type;
    int32_t number;
    int32_t size;
    char key[STORE_KEY_MAX];
    char text[STORE_VALUE_MAX];
};

#ifdef __cplusplus
}
#endif
#endif
