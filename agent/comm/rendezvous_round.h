/* One round of the rendezvous, as rank 0 keeps it: which ranks have joined, and the answer to a
 * process that asks to join. A round begins when all ranks have joined, and ends with the first
 * loss or contradiction. Pure: knows no sockets and no clock. Not thread-safe. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_ROUND_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_ROUND_H

#include "agent/comm/rendezvous_wire.h"

#include <stdbool.h>

struct rendezvous_round;

struct rendezvous_round_options {
    int size;           /* ranks; >= 1 */
    const char *job_id; /* a process with another one is asked to try again */
    const char *secret; /* a process must prove that it knows it; "": no proof is needed */
};

/* What the server does with a process that asked to join. */
enum rendezvous_answer {
    RENDEZVOUS_HANG_UP,  /* it has no proof: close the connection without a word */
    RENDEZVOUS_AGAIN,    /* send WIRE_AGAIN with the text */
    RENDEZVOUS_REFUSED,  /* send WIRE_REFUSED with the text, to it and to all that have joined */
    RENDEZVOUS_JOINED,   /* it has joined as rank join->number; others are still missing */
    RENDEZVOUS_COMPLETE, /* likewise, and it was the last: the round begins */
};

/* The texts are copied. */
struct rendezvous_round *rendezvous_round_open(const struct rendezvous_round_options *options);
void rendezvous_round_close(struct rendezvous_round *round); /* NULL-safe */

/* Answers a WIRE_JOIN that wire_check() has passed. A second process that says it is a rank that is
 * here has to try again: the first may have died on a machine that could not say so. If the first
 * is heard again, the two contradict each other, and both are refused. nonce: of the challenge that
 * it answers; host: where it came from. ret_text: "" unless the answer has a text. */
enum rendezvous_answer rendezvous_round_join(struct rendezvous_round *round,
                                             const struct wire_message *join, const char *nonce,
                                             const char *host, char ret_text[STORE_VALUE_MAX]);
/* The rank's connection is gone. Before the round begins, the rank may join again. */
void rendezvous_round_leave(struct rendezvous_round *round, int rank);
/* The rank's process, which is here, has sent a message. */
void rendezvous_round_hear(struct rendezvous_round *round, int rank);

int rendezvous_round_joined(const struct rendezvous_round *round); /* ranks that are here */
bool rendezvous_round_has_begun(const struct rendezvous_round *round);
/* "1 of 4 ranks are here; missing: 1 2 3" */
void rendezvous_round_describe(const struct rendezvous_round *round,
                               char ret_text[STORE_VALUE_MAX]);

/* Nobody joins any more. False if the round has ended before: only the first loss is reported. */
bool rendezvous_round_end(struct rendezvous_round *round);
/* From now on every process that asks to join is refused, with this reason. */
void rendezvous_round_refuse(struct rendezvous_round *round, const char *reason);
#endif
