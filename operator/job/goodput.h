/* Goodput: how the time of a job from its creation on was spent. Each second has one kind, and the
 * kinds add up to all that has been accounted for. A process tells where its own time went
 * (contract.h); what lies outside, before the first and between two, is the operator's. Pure: time
 * is an argument. */
#ifndef SHOAL_OPERATOR_JOB_GOODPUT_H
#define SHOAL_OPERATOR_JOB_GOODPUT_H

#include "operator/job/training.h"

enum goodput_kind {
    /* the first are enum training_spent: within a process */
    GOODPUT_PENDING = TRAINING_SPENT_KINDS, /* no node had taken the pod of rank 0 */
    GOODPUT_CONTAINER_START,                /* images, init containers, until the process started */
    GOODPUT_RECOVERY,                       /* from the last that a process told to the next one */
    GOODPUT_SUSPENDED,
    GOODPUT_KINDS,
};
const char *goodput_kind_name(int kind);

/* In status.training, beside TRAINING_SECONDS of the whole job. */
#define GOODPUT_OF_PROCESS    "processSeconds"
#define GOODPUT_FURTHEST_STEP "furthestStep"

/* All zero: nothing is accounted for, and nothing is known. */
struct goodput {
    bool known;
    int64_t ms[GOODPUT_KINDS];
    int64_t furthest_step; /* that any process has told: what is done again below it is lost work */
};

/* What is known of the time before a process. 0: it is not. */
struct goodput_start {
    int64_t suspended_until_ms; /* the job was suspended from its creation until then */
    int64_t scheduled_ms;       /* when a node took the pod */
    int64_t started_ms;         /* when its container started */
};

int64_t goodput_sum_ms(const struct goodput *goodput);
/* The share of steps in all that was not suspended, 0..1; NaN of no time. */
double goodput_ratio(const struct goodput *goodput);

/* What the training told last, `before`, and what it tells `now`: takes what went by between them
 * into account. created_ms: of the job. The first call with a process's account begins with the
 * creation of the job. No more than went by until now_ms is taken. */
void goodput_told(struct goodput *goodput, const struct training *before,
                  const struct training *told, const struct goodput_start *start,
                  int64_t created_ms, int64_t now_ms);

/* All that is not accounted for yet, until now_ms, was of this kind. Nothing happens if nothing is
 * known. */
void goodput_rest(struct goodput *goodput, int kind, int64_t created_ms, int64_t now_ms);

bool goodput_equal(const struct goodput *a, const struct goodput *b);
#endif
