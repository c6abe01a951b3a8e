/* The events of a local run, as an API server would keep them for a while: the newest, each with
 * how often it came. Pure. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_EVENTS_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "operator/apply/apply.h"

enum { LOCAL_EVENTS_MAX = 64, LOCAL_EVENT_REASON_BYTES = 64, LOCAL_EVENT_MESSAGE_BYTES = 512 };

struct local_event {
    int64_t time_ms; /* when it came last, wall clock */
    int64_t count;
    enum event_type type;
    char reason[LOCAL_EVENT_REASON_BYTES], message[LOCAL_EVENT_MESSAGE_BYTES]; /* cut if longer */
};

/* Zeroed: none yet. */
struct local_events {
    struct local_event items[LOCAL_EVENTS_MAX]; /* in the order of time */
    size_t count;
};

/* The same reason and message again is one event that counts twice. Of too many the oldest goes. */
void local_events_add(struct local_events *events, int64_t now_ms, enum event_type type,
                      const char *reason, const char *message);
#endif
