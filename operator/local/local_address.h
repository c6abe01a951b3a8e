/* The services of a job as addresses of this machine: each is 127.0.0.1, and each of its ports a
 * free one, the same through all attempts. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_ADDRESS_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_ADDRESS_H

#include "base/error.h"
#include "operator/job/types.h"
#include "operator/local/local_port.h"

#define LOCALHOST "127.0.0.1"

/* A port of a service, and what it became. */
struct local_address {
    const char *service; /* in the book's arena */
    int32_t port;
    int32_t local_port;
};

/* Zero it, then open it. */
struct local_addresses {
    struct arena *arena;
    struct local_address *items; /* owned */
    size_t count;
    struct local_ports ports;
};

/* Of every service that the job, a valid one with defaults, will have. keep_ports: the ports keep
 * their numbers; one that is in use is ERR_EXISTS. Close it also after a failure. */
int local_addresses_open(struct local_addresses *addresses, const struct job *job, bool keep_ports,
                         struct error *err);
void local_addresses_close(struct local_addresses *addresses);

/* The address of service[0..length) and of its port; port 0: of any of its ports. NULL: there is no
 * such service or port. */
const struct local_address *local_addresses_find(const struct local_addresses *addresses,
                                                 const char *service, size_t length, int64_t port);
#endif
