/* What this rank does just now. The training loop writes it, any thread reads it. Knows no
 * clock. */
#ifndef SHOAL_AGENT_HEALTH_ACTIVITY_H
#define SHOAL_AGENT_HEALTH_ACTIVITY_H

#include "agent/health/rank_report.h"

#include <pthread.h>

struct activity {
    pthread_mutex_t mutex;     /* guards the report */
    struct rank_report report; /* but for the collectives and the location */
};

void activity_init(struct activity *activity); /* in RANK_START */
void activity_destroy(struct activity *activity);

/* The rank enters the phase; RANK_STEP is RANK_FIRST_STEP before the first step is done. Returns
 * the phase that it was in, to go back to. activity NULL: nobody reads it. */
enum rank_phase activity_enter(struct activity *activity, enum rank_phase phase);
/* A step is done: the run's so-manieth. compute_s: its forward and backward. Likewise. */
void activity_step(struct activity *activity, int64_t step, double compute_s);

void activity_read(struct activity *activity, struct rank_report *ret_report);
#endif
