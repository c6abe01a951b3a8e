/* When a pod is asked how its training goes. An agent that answers is asked once an interval, and
 * jobs have their turns spread over it. Where nobody answers, as nobody does at the port of another
 * program or of an agent that still starts, asks become rarer. What answers otherwise is no agent,
 * and left alone. What was an agent is one again soon, and asked on. Pure: time is an argument. */
#ifndef SHOAL_OPERATOR_PROGRESS_ASK_TIMES_H
#define SHOAL_OPERATOR_PROGRESS_ASK_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#define ASK_WAIT_MAX_MS (10 * 60 * 1000)

enum ask_outcome {
    ASK_HEARD,    /* an agent told how its training goes */
    ASK_SILENT,   /* no answer, or a proxy's that there is none yet */
    ASK_STRANGER, /* an answer, but none of an agent's */
};

/* All zero: was never asked. */
struct ask_times {
    int64_t wait_ms; /* to the ask after the next without an answer */
    bool answered;   /* an agent did, at least once */
    bool stranger;   /* what answers is none */
    int unanswered;  /* in a row */
};

#define ASK_NEVER INT64_MAX

/* When a job's first ask is due, by a number of the job's own (a hash of its name). */
int64_t ask_times_first(int64_t now_ms, int64_t interval_ms, uint64_t of_job);

/* Whether nobody there tells how the training goes: an agent that did is gone for two asks (its
 * ranks have ended, and their launcher waits for others), or it is none that we know. */
bool ask_times_quiet(const struct ask_times *times);

/* When the next one is due, after this one; ASK_NEVER: not before another process runs there. */
int64_t ask_times_next(struct ask_times *times, enum ask_outcome outcome, int64_t now_ms,
                       int64_t interval_ms);
#endif
