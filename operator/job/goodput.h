/* Goodput: how the time of a job from its creation on was spent. Each second has one kind, and the
 * kinds add up to all that has been accounted for. A process tells where its own time went
 * (contract.h); what lies outside, before the first and between two, is the operator's. That goes
 * on while nobody tells: the account has what goes on now, and since when follows from its sum. So
 * it is written where something turns, and who prints it adds what went by since. Pure: time is an
 * argument. */
#ifndef SHOAL_OPERATOR_JOB_GOODPUT_H
#define SHOAL_OPERATOR_JOB_GOODPUT_H

#include "operator/job/training.h"

enum goodput_kind {
    /* the first are enum training_spent: within a process */
    GOODPUT_PENDING = TRAINING_SPENT_KINDS, /* no node had taken the pod of rank 0 */
    GOODPUT_CONTAINER_START,                /* images, init containers, until the process started */
    GOODPUT_RECOVERY,                       /* from the last that a process told to the next one */
    GOODPUT_SUSPENDED,
    GOODPUT_UNTOLD, /* a container ran, and nobody told what it did: no agent's */
    GOODPUT_KINDS,
};
const char *goodput_kind_name(int kind);

/* Of `now`: a process runs, or may, and its own word says what it did. */
#define GOODPUT_INSIDE 0

/* In status.training, beside TRAINING_SECONDS of the whole job. */
#define GOODPUT_OF_PROCESS    "processSeconds"
#define GOODPUT_FURTHEST_STEP "furthestStep"
#define GOODPUT_NOW           "secondsKind"
#define GOODPUT_PERCENT       "goodputPercent"

/* All zero: nothing is accounted for, and nothing is known. */
struct goodput {
    bool known;
    int now; /* of goodput_kind, or TRAINING_SPENT_OTHER: what goes on; GOODPUT_INSIDE */
    int64_t ms[GOODPUT_KINDS];
    int64_t furthest_step; /* that any process has told: what is done again below it is lost work */
};

/* When a node took the pod of rank 0; 0: it is not known. */
struct goodput_start {
    int64_t scheduled_ms;
};

int64_t goodput_sum_ms(const struct goodput *goodput);
/* What went by and is not accounted for, but is known to be of the kind `now`; 0: none is. */
int64_t goodput_open_ms(const struct goodput *goodput, int64_t created_ms, int64_t now_ms);
/* The account with that in it, to be shown. */
struct goodput goodput_shown(const struct goodput *goodput, int64_t created_ms, int64_t now_ms);
/* The share of steps in all that was told and not suspended, 0..1; NaN if no process has told. */
double goodput_ratio(const struct goodput *goodput);

/* What goes on at since_ms is of another kind than before. What went by until then was of the kind
 * that went on; where a process ran (GOODPUT_INSIDE), of the kind `inside`. created_ms: of the job;
 * 0: nothing is accounted for. since_ms may be past, but what is accounted for stays. */
void goodput_turn(struct goodput *goodput, int kind, int inside, int64_t since_ms,
                  int64_t created_ms, int64_t now_ms);
/* The same, but all that is not accounted for is of the new kind. */
void goodput_turn_open(struct goodput *goodput, int kind);

/* Whether another process tells than before: one that began at another time, or that has spent
 * less; or none was known. */
bool goodput_is_another(const struct training *before, const struct training *told);

/* What the training told last, `before`, and what it tells `now`: takes what went by between them
 * into account. What lies before a process that tells for the first time was what went on then.
 * No more than went by until now_ms is taken. */
void goodput_told(struct goodput *goodput, const struct training *before,
                  const struct training *told, const struct goodput_start *start,
                  int64_t created_ms, int64_t now_ms);

/* The job is over: all that is not accounted for, until now_ms, was of this kind. Nothing happens
 * if nothing is known. */
void goodput_rest(struct goodput *goodput, int kind, int64_t created_ms, int64_t now_ms);

/* The job is stopped, and nobody goes on with it: takes in what its process told last, and what is
 * not accounted for until now_ms. That was of the kind that went on; of a process that told, other.
 * `before`: as for goodput_told. */
void goodput_stop(struct goodput *goodput, const struct training *before,
                  const struct training *told, int64_t created_ms, int64_t now_ms);

bool goodput_equal(const struct goodput *a, const struct goodput *b);
#endif
