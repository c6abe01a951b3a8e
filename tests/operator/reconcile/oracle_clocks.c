/* What time does to a job, by rules of its own: when it began and ended, what its limits ask for,
 * and how long a pod that the system ended stays. */
#include "tests/operator/reconcile/simulation.h"

#include "operator/job/condition.h"

#include <inttypes.h>
#include <string.h>

#define check           simulation_check
#define FOREVER         INT64_MAX
#define SECOND_MS       1000
#define REMADE_AFTER_MS 10000 /* a pod that never ran, at the earliest */
#define REMADE_BY_MS    60000

void simulation_judge_clocks(struct simulation *s, const struct job_status *before,
                             const struct job_status *after)
{
    struct oracle *oracle = &s->oracle;
    bool resumed = condition_is_true(before, CONDITION_SUSPENDED);
    if (simulation_is_active(s, before) &&
        (resumed || (!oracle->start_ms && simulation_is_admitted(&s->seen))))
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

static void check_wakes(struct simulation *s, int64_t by_ms, const char *limit)
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
    bool begins =
        after->start_ms != before->start_ms || (condition_is_true(before, CONDITION_SUSPENDED) &&
                                                !condition_is_true(after, CONDITION_SUSPENDED));
    bool due = !begins && s->seen.now_ms >= limit_ms(before->start_ms, seconds);
    bool ends = !condition_finished(before) && condition_finished(after);
    bool blamed = ends && last->type == CONDITION_FAILED && strstr(last->message, "deadline");
    check(s, due || !blamed, "the job ends by a deadline that is not over");
    if (!simulation_is_active(s, before) && !simulation_is_spoilt(s, before))
        return;
    check(s, !due || condition_finished(after), "the deadline is over and the job goes on");
    if (!condition_finished(after))
        check_wakes(s, limit_ms(after->start_ms, seconds), "deadline");
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
        check_wakes(s, over_ms, "TTL");
}

/* ---- pods that the system ends ---- */

static bool never_ran(const struct pod *pod)
{
    return pod->phase == POD_FAILED && pod->disrupted && !pod->exited && pod->created_ms;
}

/* It grows with the job's age. Where clocks differ by more than all of it, nobody can say. */
static bool may_be_remade(const struct simulation *s, const struct pod *pod)
{
    int64_t start_ms = s->seen.status.start_ms, now_ms = s->seen.now_ms;
    int64_t stays_ms = start_ms ? (pod->created_ms - start_ms) / 2 : 0;
    if (stays_ms < REMADE_AFTER_MS)
        stays_ms = REMADE_AFTER_MS;
    if (stays_ms > REMADE_BY_MS)
        stays_ms = REMADE_BY_MS;
    return now_ms - pod->created_ms >= stays_ms || pod->created_ms - now_ms > stays_ms;
}

static void check_backoff(struct simulation *s, const struct job_status *before,
                          const struct job_status *after)
{
    const struct job *job = s->truth->job;
    bool goes_on = simulation_is_active(s, before) && !condition_finished(after);
    for (size_t i = 0; i < s->seen.plan->count && goes_on; i++) {
        const struct action *action = &s->seen.plan->actions[i];
        if (action->kind != ACTION_DELETE_POD)
            continue;
        const struct pod *pod = cluster_pod(&s->seen, action->name);
        if (never_ran(pod) && pod->index < job->replicas[pod->type].replicas.value)
            check(s, may_be_remade(s, pod), "%s is made again before its backoff is over",
                  pod->name);
    }
}

void simulation_check_clocks(struct simulation *s)
{
    const struct job_status *before = &s->seen.status, *after = simulation_planned_status(s);
    check_deadline(s, before, after);
    check_ttl(s, before, after);
    check_backoff(s, before, after);
}
