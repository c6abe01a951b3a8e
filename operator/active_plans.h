/* The plans under way. Each holds its job, which lives until its plan is over, and takes a place in
 * its lane; how many there are and how much their jobs take is bounded here. Knows no more of what
 * a plan does than whether it only tells; to carry it out is the executor's. */
#ifndef SHOAL_OPERATOR_ACTIVE_PLANS_H
#define SHOAL_OPERATOR_ACTIVE_PLANS_H

#include "operator/cache/cache.h"
#include "operator/cache/queue.h"
#include "operator/reconcile/plan.h"

/* At once. Jobs that are finished are patient: after a start, or a change of operators, many of
 * them may want a request each. */
enum { ACTIVE_PLANS_URGENT_MAX = 56, ACTIVE_PLANS_PATIENT_MAX = 8 };
#define ACTIVE_PLANS_MAX (ACTIVE_PLANS_URGENT_MAX + ACTIVE_PLANS_PATIENT_MAX)

/* While the jobs of plans under way take so much as text, there is no room for another plan. */
#define ACTIVE_PLANS_BYTES_MAX ((size_t)4 << 20)

struct active_plan {
    struct cached_job *job;          /* acquired */
    const struct job_status *status; /* before the plan; borrowed */
    char *key;                       /* "namespace/name" */
    enum queue_lane lane;            /* that the job came from */
    bool only_tells;
};

/* All zero: none is under way. */
struct active_plans {
    struct active_plan plans[ACTIVE_PLANS_MAX];
    size_t count, of_lane[QUEUE_LANES], held_bytes;
    size_t telling; /* plans that only write a status, or events */
};

/* Whether a plan of this lane may begin: ask before each. */
bool active_plans_have_room(const struct active_plans *active, enum queue_lane lane);

/* A plan begins; its job has no other. Takes the job, and copies the key. status: before the plan.
 * Returns the plan, which stays where it is until one is removed. */
const struct active_plan *active_plans_add(struct active_plans *active, const char *key,
                                           enum queue_lane lane, struct cached_job *job,
                                           const struct job_status *status,
                                           const struct plan *plan);

/* That of the job; NULL: none. */
const struct active_plan *active_plans_find(const struct active_plans *active, const char *key);

/* It is over: releases the job. Nothing happens if there is none. */
void active_plans_remove(struct active_plans *active, const char *key);
#endif
