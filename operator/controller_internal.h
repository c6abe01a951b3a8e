/* Private to the controller. It is what happens between two waits, an idea a file:
 *   controller_heard.c  what is heard, from the API server and from trainings. It marks jobs as due
 *                       and passes news on. It looks at no job and sends no request.
 *   controller_due.c    when a job is looked at: keys come into the queue with their times, and are
 *                       popped. It knows neither why a job is due nor what comes of it.
 *   controller_pass.c   one look at one job, and what is then asked of whom: the API server by the
 *                       executor, its pod by the asker. It tells the queue how that went, and
 *                       controller_due.c when it wants the job again.
 *   controller.c        opens and closes them, calls each in its turn, and shows their numbers. */
#ifndef SHOAL_OPERATOR_CONTROLLER_INTERNAL_H
#define SHOAL_OPERATOR_CONTROLLER_INTERNAL_H

#include "operator/active_plans.h"
#include "operator/apply/executor.h"
#include "operator/cache/cache.h"
#include "operator/cache/informers.h"
#include "operator/cache/queue.h"
#include "operator/controller.h"
#include "operator/other_operator.h"
#include "operator/progress/asker.h"

struct controller {
    struct controller_options options;
    struct kube *kube;
    struct cache *cache;
    struct queue *queue;
    struct executor *executor;
    struct metrics *metrics;
    struct informers *informers;
    struct asker *asker;     /* NULL: nobody is asked */
    const char *autoscaling; /* version as of the last turn; NULL: none */
    const char *kueue;       /* likewise */
    struct other_operator other;
    bool leading;        /* as of the last turn; not while another operator works */
    bool list_forbidden; /* likewise: children cannot be seen */
    struct active_plans active;
    uint64_t passes, failed_passes;
};

/* ---- controller_heard.c ---- */

/* Opens who hears: cache, asker and informers. */
void controller_heard_open(struct controller *controller);
/* What the API server serves has changed since the last turn: the versions of autoscalers and of
 * Kueue's objects. Jobs that waited for them are due. */
void controller_heard_versions(struct controller *controller);
/* What it lets us list has. Jobs get a condition that their children cannot be seen, and go on when
 * they can. */
void controller_heard_rights(struct controller *controller);

/* ---- controller_due.c ---- */

/* Opens the queue anew: nothing is due, and nothing has failed. No plan is under way. */
void controller_due_restart(struct controller *controller);
/* A pass over the job now. finished: the job has, and is patient. */
void controller_due_now(struct controller *controller, const char *key, bool finished);
/* In so many milliseconds, of a job of this status. */
void controller_due_in(struct controller *controller, const char *key,
                       const struct job_status *status, int64_t delay_ms);
/* At this wall clock time; 0: none. */
void controller_due_at(struct controller *controller, const char *key,
                       const struct job_status *status, int64_t wall_ms);
/* Passes over what is due at now_ms (steady clock), while there is room for plans, and nothing that
 * was of the past is listed anew. */
void controller_due_run(struct controller *controller, int64_t now_ms);
/* In how many milliseconds the next pass is due that there is room for; INT64_MAX: none is. */
int64_t controller_due_next_ms(const struct controller *controller, int64_t now_ms);

/* ---- controller_pass.c ---- */

/* Opens the executor, which says when a plan is over. */
void controller_pass_open(struct controller *controller);
/* A pass over the job of a key that was taken from this lane of the queue, which has room. */
void controller_pass_over(struct controller *controller, const char *key, enum queue_lane lane);
/* Plans under way are left where they are: the next pass, ours or another replica's, sees. */
void controller_pass_drop_all(struct controller *controller);
/* Asks pods for the details of jobs that somebody looks at, and nobody for any other's. */
void controller_pass_ask_details(struct controller *controller);
#endif
