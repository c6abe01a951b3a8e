/* How many events about one job are created: a token bucket per object, as in client-go, so that a
 * job that keeps failing does not flood the API server. The last tokens are reserved for events
 * that are rare, so that the end of a big job is still recorded. Pure. */
#ifndef SHOAL_OPERATOR_APPLY_EVENT_BUDGET_H
#define SHOAL_OPERATOR_APPLY_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define EVENT_BUDGET_TOKENS    25
#define EVENT_BUDGET_RESERVE   5 /* tokens that events of which a job has many may not take */
#define EVENT_BUDGET_REFILL_MS (5 * 60 * 1000) /* per token */

#define EVENT_BUDGET_TEXTS 4 /* messages remembered */
#define EVENT_BUDGET_AGAIN_MS                                                                      \
    (60 * 60 * 1000) /* the API server's --event-ttl: it has deleted the event by then */

#define EVENT_BUDGET_STORIES  4 /* kinds of events that are told at most this often */
#define EVENT_BUDGET_STORY_MS (5 * 60 * 1000)

/* All zero: full. */
struct event_budget {
    int spent;         /* tokens that are missing */
    int64_t refill_ms; /* when the refill of the next token began; valid while any is missing */
    struct reported_event {
        uint64_t hash; /* of the message */
        int64_t steady_ms;
    } reported[EVENT_BUDGET_TEXTS];        /* the newest first */
    int64_t stories[EVENT_BUDGET_STORIES]; /* when each may be told again; 0: it was not told yet */
};

/* Takes a token if there is one. one_of_many: a job may have many such events. steady_ms: a clock
 * that does not jump. */
bool event_budget_take(struct event_budget *budget, bool one_of_many, int64_t steady_ms);

/* Whether this message differs from the last few, or the event has expired since. A failure that
 * repeats itself is recorded once and leaves the budget to other events. Remembers the message. */
bool event_budget_is_new(struct event_budget *budget, const char *text, int64_t steady_ms);

/* Whether an event of this kind, 0..EVENT_BUDGET_STORIES, is due again; then it is told. */
bool event_budget_is_due(struct event_budget *budget, int story, int64_t steady_ms);
#endif
