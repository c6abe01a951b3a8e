/* A connection between every two ranks, each a ring of two: what all_to_all goes through, so that
 * no rank passes on what is not for it. They are opened by the first all_to_all: who needs none
 * has none. */
#ifndef SHOAL_AGENT_COMM_RING_PAIRS_H
#define SHOAL_AGENT_COMM_RING_PAIRS_H

#include "agent/comm/ring.h"

struct ring_pairs;

/* options: of the ring of all ranks; what it points to is used until ring_pairs_close(). Opens
 * nothing yet. */
struct ring_pairs *ring_pairs_open(const struct ring_options *options);
void ring_pairs_close(struct ring_pairs *pairs); /* NULL-safe */
/* As ring_abort(), from any thread. */
void ring_pairs_abort(struct ring_pairs *pairs, const char *reason);

/* Sends rank q the `bytes` at send[places[q] * stride], at send[q * stride] without places; what
 * rank r sends this one comes to recv[r * bytes]. stride: in bytes. One thread at a time. Errors:
 * as ring_run(), and as ring_open() the first time. */
int ring_pairs_exchange(struct ring_pairs *pairs, void *recv, const void *send, int64_t bytes,
                        int64_t stride, const int *places, struct error *err);
#endif
