/* How many events about one job may be told: a bucket of tokens, as client-go has one for each
 * object, so that a job that goes on failing does not flood the API server. What the last tokens
 * are kept for differs: what a big job has many of stops first, so that its end is still told.
 * Pure. */
#ifndef SHOAL_OPERATOR_APPLY_EVENT_BUDGET_H
#define SHOAL_OPERATOR_APPLY_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EVENT_BUDGET_TOKENS    25
#define EVENT_BUDGET_RESERVE   5               /* not for what there is much of */
#define EVENT_BUDGET_REFILL_MS (5 * 60 * 1000) /* one token */

#define EVENT_BUDGET_TEXTS    4                /* remembered */
#define EVENT_BUDGET_AGAIN_MS (60 * 60 * 1000) /* then the API server has dropped the event */

/* All zero: full. */
struct event_budget {
    int spent;         /* tokens that are missing */
    int64_t refill_ms; /* since when the next one is on its way; holds while any is missing */
    struct reported_event {
        uint64_t hash; /* of the text */
        int64_t steady_ms;
    } reported[EVENT_BUDGET_TEXTS]; /* the newest first */
};

/* Takes a token if there is one; steady_ms is a clock that does not jump. */
bool event_budget_take(struct event_budget *budget, bool one_of_many, int64_t steady_ms);

/* Whether this text is another one than the last few, or was told so long ago that nobody finds it
 * any more: what is refused again and again, or ends each time like the last, is told once, so that
 * the rest of the story is told too. Remembers it. */
bool event_budget_is_new(struct event_budget *budget, const char *text, int64_t steady_ms);

#ifdef __cplusplus
}
#endif
#endif
