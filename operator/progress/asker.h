/* Asks the pods of rank 0 how their trainings go, at TRAINING_PATH, and at TRAINING_DETAIL_PATH for
 * what is shown to who looks at one. A pod may answer anything: the time, the size and the number
 * of asks in flight are bounded, and of how it goes only numbers are read. A pod's address is what
 * its kubelet says, its port what the job says; what is asked there tells nothing but that it was
 * asked. Never blocks: its owner polls `http`. */
#ifndef SHOAL_OPERATOR_PROGRESS_ASKER_H
#define SHOAL_OPERATOR_PROGRESS_ASKER_H

#include "base/clock.h"
#include "base/http.h"
#include "operator/progress/ask_target.h"

enum { ASKER_TIMEOUT_MS = 1000, ASKER_IN_FLIGHT_MAX = 16 }; /* see asker_tick */

struct asker;

struct asker_options {
    struct http *http;   /* borrowed, as are the clocks; NULL: nobody is asked */
    int64_t interval_ms; /* between two asks of a job; 0: likewise */
    int timeout_ms;      /* of an ask; in a cluster ASKER_TIMEOUT_MS */
    const struct clocks *clocks;
    /* Something new was heard of the job, asker_heard has it; or asker_is_quiet has changed. */
    void (*news)(void *context, const char *key);
    /* An agent has answered this at TRAINING_DETAIL_PATH, unread. */
    void (*detail)(void *context, const char *key, const char *text, size_t bytes);
    void *context;
};

/* NULL: nobody is to be asked. All functions take that for an asker that follows no job. */
struct asker *asker_open(const struct asker_options *options);
void asker_close(struct asker *asker); /* cancels */

/* From now on the pod of the job's rank 0 in this snapshot is asked, if there is one; NULL: the job
 * is gone. Copies. key: "namespace/name". */
void asker_follow(struct asker *asker, const char *key, const struct snapshot *snapshot);
/* Follows no job any more: another replica leads. */
void asker_forget_all(struct asker *asker);

/* What the pod that is followed told last, while the status of the snapshot that was followed last
 * does not have it; NULL: nothing. Lives until the next call. */
const struct training *asker_heard(const struct asker *asker, const char *key);

/* Whether the pod that is followed runs, and nobody there tells: ask_times.h. */
bool asker_is_quiet(const struct asker *asker, const char *key);

/* Somebody looks at the job: asks its pod once for the details, unless it is no agent that knows of
 * them, was not heard yet, or is being asked for them. */
void asker_ask_detail(struct asker *asker, const char *key);

/* Asks whom it is time to ask. An answer that is news becomes a status write. So asks in flight and
 * `writes`, those under way, are ASKER_IN_FLIGHT_MAX at most: while the API server is behind, pods
 * are asked later, and the newest numbers are written. Returns in how many milliseconds to call
 * again without news; INT64_MAX: only after one, or when a write is over. */
int64_t asker_tick(struct asker *asker, size_t writes);

/* Since the start: asks, and those that no agent answered. */
uint64_t asker_asks(const struct asker *asker);
uint64_t asker_unanswered(const struct asker *asker);
#endif
