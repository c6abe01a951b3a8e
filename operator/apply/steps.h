/* A plan in progress, as a pure state machine. It decides which actions may start, which may run at
 * the same time, which outcome is a failure, and which event records it. The caller (apply.c on
 * this machine, executor.c on an API server) asks for the next action, starts it and reports the
 * outcome. It decides nothing that reconcile could decide.
 *
 * Each stage begins when all stages before it are done:
 *
 * status -> events -> deletes -> pod group, Workload -> service creates -> pod creates ->
 * autoscaler -> the Workload's status -> the job's own delete
 *
 * The status is written alone, events are not waited for, and deletes run in parallel. Creates use
 * the slow start of batch/v1 Job's controller: one first, and one more in parallel after each
 * success, so that their number doubles with each round trip. A quota or a webhook that refuses all
 * pods is thus asked once and not five hundred times. */
#ifndef SHOAL_OPERATOR_APPLY_STEPS_H
#define SHOAL_OPERATOR_APPLY_STEPS_H

#include "base/error.h"
#include "operator/job/types.h"
#include "operator/reconcile/plan.h"

struct steps;

/* Copies the plan and what it points to. `status` is the one that the plan was made from. At most
 * parallel_max (1 or more) actions are in flight. */
struct steps *steps_open(const struct plan *plan, const struct job_status *status,
                         size_t parallel_max);
void steps_close(struct steps *steps); /* NULL-safe */

/* The next action to start, or NULL: the caller must report an outcome first, or the plan is over.
 * An action is in flight until steps_done, except ACTION_EVENT. Never returns ACTION_REQUEUE. Lives
 * as long as the steps. */
const struct action *steps_next(struct steps *steps);

/* Of what goes well an event tells: pods one by one up to four in a plan, then all that were made,
 * or deleted, in one event when no more of them is under way; services not at all. The training
 * operator has an event for each, of which 25 reach the job.
 *
 * Reports the outcome of an action; err->code ERR_NONE: it succeeded. Returns whether the desired
 * state is reached. These outcomes are no failures: a create (of pods and what they need; not of a
 * pod of a later attempt) whose name is taken by what is not the job's, which an event records; a
 * delete of an object that is gone or was replaced (ERR_NOT_FOUND, ERR_CONFLICT). After a failure
 * only events about outcomes are started. Of a failed status write an event records only a refusal:
 * ERR_FORBIDDEN, or ERR_INPUT if the stored job breaks a rule of its definition. */
bool steps_done(struct steps *steps, const struct action *action, const struct error *err);

/* Reports instead of steps_done that what an action was to create exists, and is the job's: the
 * desired state is reached. An event records it if it was made the job's just now, which pods and
 * services are not. */
void steps_adopted(struct steps *steps, const struct action *action);

bool steps_creates(enum action_kind kind);

/* No action is in flight and none will be started. */
bool steps_are_finished(const struct steps *steps);

/* The first failure, or NULL. */
const struct error *steps_failure(const struct steps *steps);

/* When the plan asks for the next reconcile pass (wall clock), or 0. Set after a failure, too. */
int64_t steps_requeue_ms(const struct steps *steps);

/* The history that pods are created with: of the plan's own status if it has one. */
const struct history *steps_history(const struct steps *steps);
#endif
