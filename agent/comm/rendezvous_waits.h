/* The gets of a rendezvous that wait for their key. Not thread-safe. */
#ifndef SHOAL_AGENT_RENDEZVOUS_WAITS_H
#define SHOAL_AGENT_RENDEZVOUS_WAITS_H

#include "agent/comm/store.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rendezvous_waits;

struct rendezvous_wait {
    int fd; /* whose connection */
    int32_t request;
    int64_t deadline_ms;
    char key[STORE_KEY_MAX];
};

struct rendezvous_waits *rendezvous_waits_open(int max);
void rendezvous_waits_close(struct rendezvous_waits *waits); /* NULL-safe */

/* false: too many wait. */
bool rendezvous_waits_add(struct rendezvous_waits *waits, const struct rendezvous_wait *wait);
/* The connection is gone. */
void rendezvous_waits_drop(struct rendezvous_waits *waits, int fd);

/* Take out one that waits for the key, or whose time is up; false: there is none. */
bool rendezvous_waits_take(struct rendezvous_waits *waits, const char *key,
                           struct rendezvous_wait *ret_wait);
bool rendezvous_waits_take_due(struct rendezvous_waits *waits, int64_t now_ms,
                               struct rendezvous_wait *ret_wait);
/* When the next one's time is up; INT64_MAX: none waits. */
int64_t rendezvous_waits_next_ms(const struct rendezvous_waits *waits);

#ifdef __cplusplus
}
#endif
#endif
