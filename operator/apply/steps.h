/* A plan being carried out, as a pure step machine: the one place that knows in which order actions
 * may be started, which of them at the same time, what counts as a failure, and what people are
 * told of an outcome. Whoever carries out (apply on this machine, executor on an API server) asks
 * what may be started, starts it, and reports how it went. Decides nothing that reconcile could
 * have decided.
 *
 * Stages in the plan's order, each begun when all before it is done:
 *
 *   status -> events -> deletes -> pod group -> service creates -> pod creates -> autoscaler
 *   -> the job's own delete
 *
 * The status goes alone, events are told and not waited for, deletes run side by side, creates
 * begin with one and may be one more at a time after each that went well: the number in flight
 * doubles with each round, as in batch/v1 Job's slow start, so that a quota or a webhook that
 * refuses all pods is asked once and not five hundred times. */
#ifndef SHOAL_OPERATOR_APPLY_STEPS_H
#define SHOAL_OPERATOR_APPLY_STEPS_H

#include "base/error.h"
#include "operator/job/types.h"
#include "operator/reconcile/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steps;

/* Copies what it needs: plan and status may go. `status` is the one the plan was made from. At most
 * parallel_max (1 or more) actions are in flight. */
struct steps *steps_open(const struct plan *plan, const struct job_status *status,
                         size_t parallel_max);
void steps_close(struct steps *steps); /* NULL-safe */

/* The next action to be started now, or NULL: wait for one that is in flight, or it is over. It is
 * in flight until steps_done, but for ACTION_EVENT, which nobody waits for. Never ACTION_REQUEUE.
 * Lives as long as the machine. */
const struct action *steps_next(struct steps *steps);

/* The outcome of an action in flight: err->code ERR_NONE if it went well. Returns whether what it
 * was for is now so: a create (but of a PodGroup) that finds its name taken and a delete that finds
 * nothing, or another object of that name or (by force) a changed one (ERR_NOT_FOUND,
 * ERR_CONFLICT), have not failed; the former is told. After a failure nothing new is started except
 * events about outcomes; of a status only a refusal is told (ERR_FORBIDDEN, ERR_INPUT: the stored
 * job breaks a rule of its definition). */
bool steps_done(struct steps *steps, const struct action *action, const struct error *err);

bool steps_creates(enum action_kind kind);

/* Nothing is in flight and nothing will be started any more. */
bool steps_over(const struct steps *steps);

/* The first failure, or NULL. */
const struct error *steps_failure(const struct steps *steps);

/* When the plan wants the next pass (wall clock), or 0; failure or not. */
int64_t steps_requeue_ms(const struct steps *steps);

/* What pods are built with: the plan's own status if it has one, else the one given. */
const struct history *steps_history(const struct steps *steps);

#ifdef __cplusplus
}
#endif
#endif
