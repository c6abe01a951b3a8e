/* How the ranks of a ring find each other: each listens, tells the store where, connects to the
 * next and accepts the previous. Between processes of one machine the socket is a Unix one (twice
 * as fast as TCP over loopback), else TCP. */
#ifndef SHOAL_AGENT_COMM_RING_BOOTSTRAP_H
#define SHOAL_AGENT_COMM_RING_BOOTSTRAP_H

#include "agent/comm/ring.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sockets are non-blocking and the caller's. Errors as ring_open. */
int ring_bootstrap(const struct ring_options *options, int *ret_out, int *ret_in,
                   struct error *err);

#ifdef __cplusplus
}
#endif
#endif
