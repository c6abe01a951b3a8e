/* What time does to a job, by rules of its own: when it began and ended, what its limits ask for,
 * and how long a pod that the system ended stays. */
#include "tests/operator/reconcile/simulation.h"

#include "operator/job/condition.h"

#include <inttypes.h>
#include <string.h>

#define check     simulation_check
#define FOREVER   INT64_MAX
#define SECOND_MS 1000
/* A pod that never ran, by its age: the bounds that pages and policy_recreate_backoff.h promise. */
#define REMADE_AFTER_MS 10000
#define REMADE_BY_MS    60000

/* Whether a pass over the status `before` lets the job start, or resumes it. */
static bool begins(const struct simulation *s, const struct job_status *before, int64_t start_ms)
{
    return simulation_is_active(s, before) && (condition_is_true(before, CONDITION_SUSPENDED) ||
                                               (!start_ms && simulation_is_admitted(&s->seen)));
}

/* When the job began, as far as the pass can know: for old statuses there is no table. */
static int64_t known_start_ms(const struct simulation *s, const struct job_status *before)
{
    return s->stale_status ? before->start_ms : s->oracle.start_ms;
}

void simulation_judge_clocks(struct simulation *s, const struct job_status *before,
                             const struct job_status *after)
{
    struct oracle *oracle = &s->oracle;
    if (begins(s, before, oracle->start_ms))
        oracle->start_ms = s->seen.now_ms;
    if (condition_finished(after) && !oracle->finished_ms)
        oracle->finished_ms = s->seen.now_ms;
    check(s, after->start_ms == oracle->start_ms,
          "the job has started at %" PRId64 ", and says %" PRId64, oracle->start_ms,
          after->start_ms);
    check(s, after->completion_ms == oracle->finished_ms,
          "the job has ended at %" PRId64 ", and says %" PRId64, oracle->finished_ms,
          after->completion_ms);
}

/* ---- the two limits ---- */

static int64_t limit_ms(int64_t from_ms, const struct optional *seconds)
{
    return from_ms && seconds->set ? from_ms + seconds->value * SECOND_MS : FOREVER;
}

void simulation_check_wakes(struct simulation *s, int64_t by_ms, const char *limit)
{
    const struct plan *plan = s->seen.plan;
    const struct action *last = plan->count ? &plan->actions[plan->count - 1] : NULL;
    check(s, by_ms == FOREVER || (last && last->kind == ACTION_REQUEUE && last->at_ms <= by_ms),
          "nobody looks when the %s is over, at %" PRId64, limit, by_ms);
}

/* What begins or begins anew with the plan has all its time before it. */
static void check_deadline(struct simulation *s, const struct job_status *before,
                           const struct job_status *after)
{
    const struct optional *seconds = &s->truth->job->run_policy.active_deadline_seconds;
    const struct condition *last = condition_last(after);
    int64_t start_ms = known_start_ms(s, before);
    bool is_new = begins(s, before, start_ms);
    bool due = !is_new && s->seen.now_ms >= limit_ms(start_ms, seconds);
    bool ends = !condition_finished(before) && condition_finished(after);
    bool blamed = ends && last->type == CONDITION_FAILED && strstr(last->message, "deadline");
    check(s, due || !blamed, "the job ends by a deadline that is not over");
    if (!simulation_is_active(s, before) && !simulation_is_spoilt(s, before))
        return;
    check(s, !due || condition_finished(after), "the deadline is over and the job goes on");
    if (!condition_finished(after))
        simulation_check_wakes(s, limit_ms(is_new ? s->seen.now_ms : start_ms, seconds),
                               "deadline");
}

static void check_ttl(struct simulation *s, const struct job_status *before,
                      const struct job_status *after)
{
    const struct run_policy *policy = &s->truth->job->run_policy;
    const struct plan *plan = s->seen.plan;
    int64_t over_ms = limit_ms(after->completion_ms, &policy->ttl_seconds_after_finished);
    bool deletes = false;
    for (size_t i = 0; i < plan->count; i++)
        deletes |= plan->actions[i].kind == ACTION_DELETE_JOB;
    check(s, !deletes || !policy->suspend, "the job is deleted though it is suspended");
    check(s, !deletes || s->seen.now_ms >= over_ms, "the job is deleted before its TTL is over");
    if (policy->suspend || deletes || !after->completion_ms)
        return;
    check(s, !condition_finished(before) || s->seen.now_ms < over_ms,
          "the TTL is over and the job stays");
    /* one that was invalid from the beginning is looked at again by its own status */
    if (condition_finished(before) || simulation_is_active(s, before))
        simulation_check_wakes(s, over_ms, "TTL");
}

/* ---- pods that the system ends ---- */

static bool never_ran(const struct pod *pod)
{
    return pod->phase == POD_FAILED && pod->disrupted && !pod->exited && pod->created_ms;
}

/* By how far the clock that dates pods is ahead of the operator's, their age is below zero: behind
 * a minute, clocks differ too much to wait for. */
static void check_kept(struct simulation *s, const struct pod *pod, struct oracle_keep *keep)
{
    int64_t age_ms = s->seen.now_ms - pod->created_ms;
    check(s, age_ms < REMADE_BY_MS && age_ms >= -REMADE_BY_MS,
          "%s never ran, and is kept for more than a minute", pod->name);
    simulation_check_wakes(s, pod->created_ms + REMADE_BY_MS, "backoff of a pod that never ran");
    bool follows = keep->start_ms == s->oracle.start_ms && keep->created_ms <= pod->created_ms;
    if (!s->stale_status && (!follows || age_ms > keep->kept_ms))
        *keep = (struct oracle_keep){s->oracle.start_ms, pod->created_ms, age_ms};
}

/* It may only grow with the job's age: what the pod before it was kept for, this one is, too. */
static void check_remade(struct simulation *s, const struct pod *pod,
                         const struct oracle_keep *keep)
{
    int64_t age_ms = s->seen.now_ms - pod->created_ms;
    check(s, age_ms >= REMADE_AFTER_MS || age_ms < -REMADE_AFTER_MS,
          "%s is made again before its backoff is over", pod->name);
    bool follows = !s->stale_status && keep->start_ms == s->oracle.start_ms &&
                   keep->created_ms <= pod->created_ms && age_ms >= 0;
    check(s, !follows || age_ms > keep->kept_ms, "%s is made again sooner than the pod before it",
          pod->name);
}

bool simulation_deletes(const struct simulation *s, const struct pod *pod)
{
    const struct plan *plan = s->seen.plan;
    bool found = false;
    for (size_t i = 0; i < plan->count && !found; i++)
        found = plan->actions[i].kind == ACTION_DELETE_POD &&
                strcmp(plan->actions[i].name, pod->name) == 0;
    return found;
}

static void check_backoff(struct simulation *s, const struct job_status *before,
                          const struct job_status *after)
{
    const struct job *job = s->truth->job;
    if (!simulation_is_active(s, before) || condition_finished(after))
        return;
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        if (!never_ran(pod) || pod->deleted_ms ||
            pod->index >= job->replicas[pod->type].replicas.value)
            continue;
        struct oracle_keep *keep = &s->oracle.keeps[pod->type][pod->index];
        if (simulation_deletes(s, pod))
            check_remade(s, pod, keep);
        else
            check_kept(s, pod, keep);
    }
}

void simulation_check_clocks(struct simulation *s)
{
    const struct job_status *before = &s->seen.status, *after = simulation_planned_status(s);
    check_deadline(s, before, after);
    check_ttl(s, before, after);
    check_backoff(s, before, after);
}
