/* Connects the ranks of a ring: each listens, publishes its address in the store, connects to the
 * next rank and accepts the previous one. Two processes on one machine use a Unix socket, which is
 * twice as fast as TCP over the loopback; others use TCP. */
#ifndef SHOAL_AGENT_COMM_RING_BOOTSTRAP_H
#define SHOAL_AGENT_COMM_RING_BOOTSTRAP_H

#include "agent/comm/ring.h"

/* The caller closes both sockets; they are non-blocking. Errors as ring_open(). */
int ring_bootstrap(const struct ring_options *options, int *ret_out, int *ret_in,
                   struct error *err);
#endif
