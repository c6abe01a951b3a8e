/* The time of a job by kind as counters show it: it goes on while nothing is written, and no kind
 * ever goes back. A word of a process that comes later may say that what was shown as another kind,
 * recovery say, was a step: what was shown stays, and the word counts for the rest of its time, so
 * that the kinds add up all the same. Pure. */
#ifndef SHOAL_OPERATOR_JOB_SHOWN_TIME_H
#define SHOAL_OPERATOR_JOB_SHOWN_TIME_H

#include "operator/job/goodput.h"

struct shown_time {
    struct goodput account; /* as it was written last */
    int64_t created_ms;     /* of the job; 0: not known, and then nothing goes on by itself */
    int64_t ms[GOODPUT_KINDS];
};

/* What the account has, and what goes on until now. */
struct shown_time shown_time_open(const struct goodput *account, int64_t created_ms,
                                  int64_t now_ms);
/* Another account was written. What becomes more is added to added_ms[GOODPUT_KINDS], too. */
void shown_time_follow(struct shown_time *shown, const struct goodput *account, int64_t *added_ms);
/* Time goes on. */
void shown_time_go_on(struct shown_time *shown, int64_t now_ms, int64_t *added_ms);
#endif
