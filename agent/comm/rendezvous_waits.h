/* The get requests of a rendezvous whose key is not set yet. Not thread-safe. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_WAITS_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_WAITS_H

#include "agent/comm/store.h"

#include <stdbool.h>
#include <stdint.h>

struct rendezvous_waits;

struct rendezvous_wait {
    int fd; /* whose connection */
    int32_t request;
    int64_t deadline_ms;
    char key[STORE_KEY_MAX];
};

struct rendezvous_waits *rendezvous_waits_open(int max);
void rendezvous_waits_close(struct rendezvous_waits *waits); /* NULL-safe */

/* false: `max` requests wait already. */
bool rendezvous_waits_add(struct rendezvous_waits *waits, const struct rendezvous_wait *wait);
/* Removes the requests of a closed connection. */
void rendezvous_waits_drop(struct rendezvous_waits *waits, int fd);

/* Removes and returns a request for the key, or one whose deadline has passed; false: there is
 * none. */
bool rendezvous_waits_take(struct rendezvous_waits *waits, const char *key,
                           struct rendezvous_wait *ret_wait);
bool rendezvous_waits_take_due(struct rendezvous_waits *waits, int64_t now_ms,
                               struct rendezvous_wait *ret_wait);
/* The earliest deadline; INT64_MAX: no request waits. */
int64_t rendezvous_waits_next_ms(const struct rendezvous_waits *waits);
#endif
