/* Containers whose end a pass has seen, for their events (ExitedWithCode): what ended in the same
 * way is told together. Knows no policy: observe.c says what has ended. */
#ifndef SHOAL_OPERATOR_RECONCILE_EXITS_H
#define SHOAL_OPERATOR_RECONCILE_EXITS_H

#include "operator/job/types.h"
#include "operator/reconcile/plan.h"

struct arena;

/* In the order they were seen; all zero: none. */
struct exits {
    struct pod_exit {
        const struct pod *pod;
        struct pod_end end;
        bool told;
    } * items;
    size_t count, size;
};

/* The pod must live until the events are made; so must the texts of `end`, which is copied. */
void exits_add(struct exits *exits, const struct pod *pod, const struct pod_end *end,
               struct arena *arena);

/* Adds the events to the plan. Pods whose container of one name ended with one code, for one
 * reason, are told one by one up to EVENTS_ONE_BY_ONE, else together with the names of the first
 * EVENT_NAMES_MAX. */
void exits_tell(struct exits *exits, const struct job *job, struct plan *plan);
#endif
