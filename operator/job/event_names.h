/* The names in an event that tells of many objects: the first ones, and how many there are more. An
 * event's message holds 1,024 bytes. */
#ifndef SHOAL_OPERATOR_JOB_EVENT_NAMES_H
#define SHOAL_OPERATOR_JOB_EVENT_NAMES_H

#include <stddef.h>

struct arena;

enum {
    EVENTS_ONE_BY_ONE = 4, /* so many of a kind have an event each */
    EVENT_NAMES_MAX = 8
};

/* All zero: none. */
struct event_names {
    size_t count;
    const char *text; /* of the first EVENT_NAMES_MAX; NULL: none */
};

void event_names_add(struct event_names *names, const char *name, struct arena *arena);

/* "j-worker-0, j-worker-1", or "..., j-worker-7 and 2 more". At least one was added. */
const char *event_names_text(const struct event_names *names, struct arena *arena);
#endif
