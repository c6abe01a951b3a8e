/* Free TCP ports of this machine, for services that become 127.0.0.1. A port that was taken stays
 * ours as far as other runs of this program go, until local_ports_close or our death. Knows port
 * numbers only. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_PORT_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_PORT_H

#include <stdint.h>

#include "base/error.h"

enum { LOCAL_PORTS_MAX = 4096 };

struct local_ports {
    int locks[LOCAL_PORTS_MAX]; /* one abstract Unix socket for each port that was taken */
    int count;
};

/* Takes a port that nothing is bound to, on any address. Ports below the kernel's ephemeral range
 * are chosen, so that no outgoing connection can come to sit on it before the pod listens. */
int local_ports_take(struct local_ports *ports, int32_t *ret_port, struct error *err);

/* Takes this very port, or fails with ERR_EXISTS if something is bound to it. */
int local_ports_take_fixed(struct local_ports *ports, int port, struct error *err);

void local_ports_close(struct local_ports *ports);
#endif
