/* Who makes room for worker 0 of an elastic job without a Master, by rules of its own. */
#include "tests/operator/reconcile/simulation.h"

#include "operator/job/condition.h"

#include <inttypes.h>
#include <string.h>

#define check      simulation_check
#define PATIENCE_S 30

static bool is_waiting(const struct pod *pod)
{
    return pod->phase == POD_PENDING && !pod->node;
}

/* As far as it shows: what a kubelet refuses has no container that ended; and one that ended in the
 * moment of its deletion may never have begun. */
static bool has_run(const struct pod *pod)
{
    return pod->phase == POD_RUNNING || pod->phase == POD_SUCCEEDED ||
           (pod->phase == POD_FAILED && pod->exited && pod->exited_ms != pod->deleted_ms);
}

static const struct pod *worker_0(struct simulation *s)
{
    return cluster_pod(&s->seen, "j-worker-0");
}

static bool is_another(const struct pod *pod)
{
    return pod->type == REPLICA_WORKER && pod->index > 0;
}

static bool waits_for_worker_0(const struct job *job)
{
    return job->elastic.present && !job->replicas[REPLICA_MASTER].present &&
           job->run_policy.restart_scope == SCOPE_REPLICA;
}

static int64_t enough(const struct simulation *s)
{
    int64_t min = s->seen.job->elastic.min_replicas.value, gang = simulation_gang_of(s->seen.job);
    return s->seen.options.gang.scheduler != GANG_NONE && gang > min ? gang : min;
}

/* When it has waited for room for so long that another is to go. */
static int64_t due_ms(struct simulation *s, const struct job_status *status)
{
    const struct optional *seconds = &s->seen.job->elastic.shrink_after_s;
    const struct pod *pod = worker_0(s);
    bool waits = pod && is_waiting(pod) && !pod->deleted_ms && pod->waiting_reason &&
                 pod->created_ms > status->history.worker_0_ms &&
                 strcmp(pod->waiting_reason, "Unschedulable") == 0 &&
                 simulation_is_well(s, pod, status);
    return waits ? pod->created_ms + 1000 * (seconds->set ? seconds->value : PATIENCE_S)
                 : INT64_MAX;
}

/* The last of the others that run and would run on, if they are enough; 0: they are not. */
static int32_t last_that_runs(struct simulation *s, const struct job_status *status)
{
    int32_t count = 0, last = 0;
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        if (!is_another(pod) || pod->phase != POD_RUNNING || pod->deleted_ms || pod->node_lost_ms ||
            !simulation_is_well(s, pod, status))
            continue;
        last = pod->index > last ? pod->index : last;
        count++;
    }
    return count >= enough(s) ? last : 0;
}

/* Whether the job goes on, as far as the pass can see: its status may be an old one. */
static bool goes_on(const struct simulation *s, const struct job_status *before,
                    const struct job_status *after)
{
    const struct job *job = s->seen.job;
    bool asleep = job->run_policy.suspend ||
                  (condition_is_true(before, CONDITION_SUSPENDED) && s->seen.pod_count > 0);
    return !job->invalid && !asleep && !condition_finished(before) && !condition_finished(after);
}

/* Whether a plan may choose one, if it is time. */
static bool may_choose(struct simulation *s, const struct job_status *before,
                       const struct job_status *after)
{
    return !before->history.preempted && waits_for_worker_0(s->seen.job) &&
           simulation_is_admitted(&s->seen) && goes_on(s, before, after);
}

/* Whether it is not known yet that this pod of worker 0 has run. */
static bool comes_new(const struct pod *first, const struct job_status *before)
{
    return has_run(first) && first->created_ms > before->history.worker_0_ms;
}

/* Whether a plan may forget it: worker 0 has run, or all begins anew. */
static bool is_over(struct simulation *s, const struct job_status *before,
                    const struct job_status *after)
{
    const struct pod *first = worker_0(s);
    bool resumes = condition_is_true(before, CONDITION_SUSPENDED) &&
                   !condition_is_true(after, CONDITION_SUSPENDED);
    return goes_on(s, before, after) && (resumes || (first && comes_new(first, before)));
}

/* Those that wait for a node would take the room. The one that makes it goes when it is time. */
static void check_room(struct simulation *s, const struct job_status *after)
{
    int64_t at_ms = due_ms(s, after);
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        bool gives = is_another(pod) && pod->index == after->history.preempted &&
                     pod->phase == POD_RUNNING && !simulation_is_lost(&s->seen, pod) &&
                     s->seen.now_ms >= at_ms;
        check(s, !gives || pod->deleted_ms || simulation_deletes(s, pod),
              "%s keeps the room that worker 0 is to have", pod->name);
        check(s,
              !is_waiting(pod) || pod->deleted_ms || simulation_deletes(s, pod) ||
                  !simulation_is_kept_out(s, pod->type, pod->index, after),
              "%s may take the room of worker 0", pod->name);
    }
}

/* The status knows the newest pod of worker 0 that was seen to run. */
static void check_known(struct simulation *s, const struct job_status *before,
                        const struct job_status *after)
{
    const struct pod *first = worker_0(s);
    bool is_news = goes_on(s, before, after) && waits_for_worker_0(s->seen.job) && first &&
                   comes_new(first, before);
    int64_t due = is_news ? first->created_ms : before->history.worker_0_ms;
    check(s, after->history.worker_0_ms == due,
          "the newest pod of worker 0 that has run is of %" PRId64 ", and it should be of %" PRId64,
          after->history.worker_0_ms, due);
}

void simulation_check_preemption(struct simulation *s)
{
    const struct job_status *before = &s->seen.status, *after = simulation_planned_status(s);
    int32_t was = before->history.preempted, is = after->history.preempted, due = was;
    if (was && is_over(s, before, after))
        due = 0;
    if (may_choose(s, before, after)) {
        int64_t at_ms = due_ms(s, after);
        if (s->seen.now_ms >= at_ms)
            due = last_that_runs(s, after);
        else
            simulation_check_wakes(s, at_ms, "patience with worker 0");
    }
    if (goes_on(s, before, after))
        check_room(s, after);
    check_known(s, before, after);
    check(s, is == due, "worker %d makes room for worker 0, and it should be worker %d", is, due);
}

bool simulation_makes_room(struct simulation *s, const struct pod *pod,
                           const struct job_status *status)
{
    int32_t preempted = status->history.preempted;
    bool gives = pod->index == preempted && s->seen.now_ms >= due_ms(s, status);
    return preempted && is_another(pod) && (gives || is_waiting(pod)) &&
           waits_for_worker_0(s->seen.job);
}

bool simulation_is_kept_out(const struct simulation *s, enum replica_type type, int32_t index,
                            const struct job_status *status)
{
    int32_t preempted = status->history.preempted;
    int64_t others = 0;
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        others += is_another(pod) && pod->index != preempted && pod->node && !pod->deleted_ms &&
                  pod->phase != POD_FAILED && !simulation_is_lost(&s->seen, pod) &&
                  pod->index < s->seen.job->replicas[REPLICA_WORKER].replicas.value;
    }
    return preempted && type == REPLICA_WORKER && index > 0 &&
           (index == preempted || others + 1 >= enough(s));
}

void simulation_judge_deletion(struct simulation *s, const struct action *action)
{
    const struct job_status *status = simulation_planned_status(s);
    const struct pod *pod = cluster_pod(&s->seen, action->name), *first = worker_0(s);
    if (!s->seen.job->elastic.present || !is_another(pod) || pod->phase != POD_RUNNING ||
        s->seen.job->run_policy.suspend || condition_finished(status) ||
        condition_is_true(status, CONDITION_SUSPENDED) || !simulation_is_well(s, pod, status))
        return;
    check(s, !first || !first->node, "%s is deleted though worker 0 has a node", pod->name);
    check(s, !s->oracle.preempted || s->oracle.preempted == pod->index,
          "%s goes for worker 0, and worker %d has gone already", pod->name, s->oracle.preempted);
    s->oracle.preempted = pod->index;
}

void simulation_judge_preemption(struct simulation *s, bool resumed)
{
    const struct pod *first = worker_0(s);
    if (resumed || (first && has_run(first)))
        s->oracle.preempted = 0;
}
