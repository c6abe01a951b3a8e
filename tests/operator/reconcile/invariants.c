/* What must hold in every history. */
#include "tests/operator/reconcile/simulation.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define check simulation_check

void simulation_fail(struct simulation *s, const char *format, ...)
{
    va_list args;
    if (s->tell_again)
        s->tell_again(s);
    va_start(args, format);
    fprintf(stderr, "%s\nseed %" PRIu64 " (SIMULATION_SEED=%" PRIu64 " runs it alone): ",
            str_text(&s->history), s->seed, s->seed);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    fail();
}

/* ---- a plan ---- */

const struct job_status *simulation_planned_status(const struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    return plan->count && plan->actions[0].kind == ACTION_SET_STATUS ? plan->actions[0].status
                                                                     : &s->seen.status;
}

/* Whether a pod has a place in the job, and in the attempt that `status` is at. */
static bool has_place(const struct simulation *s, const struct pod *pod,
                      const struct job_status *status)
{
    const struct job *job = s->seen.job;
    return pod->index < job->replicas[pod->type].replicas.value &&
           (job->run_policy.restart_scope != SCOPE_JOB || pod->attempt >= status->history.attempt);
}

static bool wants_work(const struct simulation *s, const struct job_status *status)
{
    return !s->seen.job->run_policy.suspend && !condition_finished(status) &&
           !condition_is_true(status, CONDITION_SUSPENDED);
}

bool simulation_is_admitted(const struct cluster *cluster)
{
    const char *phase = cluster->pod_group.name ? cluster->pod_group.phase : "";
    return cluster->options.gang.scheduler != GANG_VOLCANO ||
           (*phase && strcmp(phase, "Pending") != 0);
}

/* No worker begins among others that are done. */
static bool is_closed(const struct simulation *s, const struct history *history,
                      enum replica_type type)
{
    bool done = false;
    for (int32_t i = 0; i < history->completed_count[REPLICA_WORKER]; i++)
        done |= history->completed[REPLICA_WORKER][i];
    return done && type == REPLICA_WORKER && s->seen.job->elastic.present;
}

static bool is_overdue(const struct cluster *cluster, const struct pod *pod)
{
    return cluster->options.overdue_ms && pod->deleted_ms &&
           cluster->now_ms - pod->deleted_ms - pod->grace_ms >= cluster->options.overdue_ms;
}

/* On a node that is well a pod that runs ends by itself or not at all: two of them would have one
 * rank. */
bool simulation_is_lost(const struct cluster *cluster, const struct pod *pod)
{
    const struct reconcile_options *options = &cluster->options;
    bool over = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    return (options->node_lost_ms && pod->node_lost_ms && !over &&
            cluster->now_ms - pod->node_lost_ms >= options->node_lost_ms) ||
           ((over || pod->node_lost_ms) && is_overdue(cluster, pod));
}

static void check_creation(struct simulation *s, const struct action *action,
                           const struct job_status *status)
{
    const struct job *job = s->seen.job;
    const struct pod *foreign = simulation_foreign_pod(s, action->name);
    check(s, !cluster_pod(&s->seen, action->name), "%s is made though it is there", action->name);
    check(s, !foreign || !s->foreign_seen[foreign - s->foreign],
          "%s is made though another's has its name", action->name);
    check(s, action->index < job->replicas[action->type].replicas.value,
          "%s is made beyond the number of replicas", action->name);
    check(s, !history_is_complete(&status->history, action->type, action->index),
          "%s is made though it is complete", action->name);
    check(s, wants_work(s, status) && !job->invalid, "%s is made in vain", action->name);
    check(s, simulation_is_admitted(&s->seen), "%s is made before its group is admitted",
          action->name);
    check(s, !is_closed(s, &status->history, action->type), "%s is made though others are done",
          action->name);
    check(s, status->start_ms, "%s is made before the job has started", action->name);
    check(s, !simulation_is_kept_out(s, action->type, action->index, status),
          "%s is made though worker 0 needs its room", action->name);
}

static const char *avoided_text(const struct simulation *s, const struct history *history)
{
    const char *names = history_avoided_names(history, s->truth->arena);
    return names ? names : "";
}

/* Whether a pod is on a node that is avoided since; or waits for one and was made to avoid others,
 * so that it may come to a bad one, or never to one that is good again. */
static bool must_move(const struct history *history, const struct pod *pod, const char *avoided)
{
    if (pod->node)
        return simulation_came_untold(pod) && history_avoided(history, pod->node);
    return pod->phase == POD_PENDING && strcmp(pod->avoids ? pod->avoids : "", avoided) != 0;
}

bool simulation_is_well(struct simulation *s, const struct pod *pod,
                        const struct job_status *status)
{
    return pod->phase != POD_FAILED && has_place(s, pod, status) &&
           !must_move(&status->history, pod, avoided_text(s, &status->history));
}

static void check_deletion(struct simulation *s, const struct action *action,
                           const struct job_status *status)
{
    const struct pod *pod = cluster_pod(&s->seen, action->name);
    check(s, pod && strcmp(pod->uid, action->uid) == 0, "%s is deleted unseen", action->name);
    if (action->kind == ACTION_FORCE_DELETE_POD)
        check(s, simulation_is_lost(&s->seen, pod), "%s is deleted by force though it is not lost",
              action->name);
    else if (wants_work(s, status))
        check(s, !simulation_is_well(s, pod, status) || simulation_makes_room(s, pod, status),
              "%s is deleted though it is well", action->name);
}

/* A job fails for a reason: what the system does to its pods is none. */
static void check_failure(struct simulation *s, const struct job_status *status)
{
    const struct condition *last = condition_last(status);
    if (condition_finished(&s->seen.status) || !last || last->type != CONDITION_FAILED)
        return;
    bool failed = s->seen.job->invalid || strstr(last->message, "backoff limit") ||
                  strstr(last->message, "deadline");
    for (size_t i = 0; i < s->seen.pod_count; i++)
        failed |= s->seen.pods[i].phase == POD_FAILED && !s->seen.pods[i].disrupted;
    check(s, failed, "the job fails without cause");
}

/* A job succeeds by its master, else by all workers; an elastic one by any. */
static void check_success(struct simulation *s, const struct job_status *status)
{
    const struct job *job = s->seen.job;
    const struct condition *last = condition_last(status);
    if (condition_finished(&s->seen.status) || !last || last->type != CONDITION_SUCCEEDED)
        return;
    enum replica_type type =
        job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
    int64_t wanted = job->replicas[type].replicas.value, done = 0;
    for (int32_t i = 0; i < status->history.completed_count[type]; i++)
        done += status->history.completed[type][i];
    bool any = type == REPLICA_WORKER && job->elastic.present;
    check(s, done >= wanted || (any && done > 0) || job->invalid,
          "the job succeeds by %d of its replicas", (int)done);
}

/* People look there for what stands in the way. */
static void check_told(struct simulation *s, const struct job_status *status)
{
    bool active = wants_work(s, status) && !s->seen.job->invalid;
    check(s, !s->seen.refused || !active || condition_is_true(status, CONDITION_WAITING),
          "nobody is told of what was refused: %s", s->seen.refused);
}

void simulation_check_plan(struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    const struct job_status *status = simulation_planned_status(s);
    check_failure(s, status);
    check_success(s, status);
    check_told(s, status);
    simulation_check_preemption(s);
    check(s,
          condition_is_true(status, CONDITION_SUSPENDED) || s->seen.pod_count == 0 ||
              !condition_is_true(&s->seen.status, CONDITION_SUSPENDED),
          "the job resumes while pods of before are there");
    for (size_t i = 0; i < plan->count; i++) {
        const struct action *action = &plan->actions[i];
        check(s, i == 0 || plan->actions[i - 1].kind <= action->kind, "the order is wrong");
        check(s, i == 0 || action->kind != ACTION_SET_STATUS, "there are two statuses");
        check(s, i + 1 == plan->count || action->kind != ACTION_REQUEUE, "there are two requeues");
        if (action->kind == ACTION_CREATE_POD)
            check_creation(s, action, status);
        else if (action->kind == ACTION_DELETE_POD || action->kind == ACTION_FORCE_DELETE_POD)
            check_deletion(s, action, status);
        else if (action->kind == ACTION_DELETE_JOB)
            check(s, condition_finished(status), "the job is deleted before its end");
    }
}

/* ---- the world ---- */

static void check_pods(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    bool group = truth->job->run_policy.restart_scope == SCOPE_JOB;
    for (size_t i = 0; i < truth->pod_count; i++) {
        const struct pod *pod = &truth->pods[i];
        check(s, !group || pod->attempt == truth->pods[0].attempt, "two attempts at once");
        for (size_t k = 0; k < i; k++)
            check(s, truth->pods[k].type != pod->type || truth->pods[k].index != pod->index,
                  "two pods in the place of %s", pod->name);
    }
}

void simulation_check_world(struct simulation *s)
{
    const struct job_status *status = &s->truth->status;
    int64_t limit = s->truth->job->run_policy.backoff_limit.value;
    bool finished = condition_finished(status);
    check_pods(s);
    if (status->condition_count == 0)
        return;
    const struct condition *last = condition_last(status);
    check(s, status->conditions[0].type == CONDITION_CREATED, "the first condition is not Created");
    check(s, status->history.failures == s->oracle.failures,
          "%d failures are counted, there were %d", status->history.failures, s->oracle.failures);
    simulation_check_nodes(s);
    check(s, !s->was_finished || finished, "a finished job came back");
    check(s,
          status->history.restarts <= status->history.failures &&
              (finished || condition_is_true(status, CONDITION_SUSPENDED) ||
               status->history.restarts == status->history.failures),
          "%d restarts answer %d failures", status->history.restarts, status->history.failures);
    check(s, finished || limit < 0 || status->history.failures <= limit,
          "the limit is passed and the job goes on");
    check(s, !strstr(last->message, "backoff limit") || status->history.failures > limit,
          "the job failed by a limit that is not passed");
    check(s, last->status, "the last condition is not true");
    check(s, !finished || last->type == CONDITION_SUCCEEDED || last->type == CONDITION_FAILED,
          "the job is finished and the last condition says something else");
    check(s, finished == (status->completion_ms != 0), "finished without a time, or the reverse");
    check(s, last->type == CONDITION_RUNNING || !condition_is_true(status, CONDITION_RUNNING),
          "the job runs and the last condition says something else");
    check(s, last->type != CONDITION_RUNNING || !condition_is_true(status, CONDITION_SUSPENDED),
          "the job runs and is suspended");
    s->was_finished = finished;
}

/* ---- at rest ---- */

static int32_t alive(const struct simulation *s)
{
    int32_t count = 0;
    for (size_t i = 0; i < s->truth->pod_count; i++)
        count += s->truth->pods[i].phase == POD_RUNNING || s->truth->pods[i].phase == POD_PENDING;
    return count;
}

static bool is_excused(const struct simulation *s, enum replica_type type, int32_t index)
{
    const struct history *history = &s->truth->status.history;
    return history_is_complete(history, type, index) || !simulation_is_admitted(s->truth) ||
           is_closed(s, history, type) || simulation_is_kept_out(s, type, index, &s->truth->status);
}

int32_t simulation_gang_of(const struct job *job)
{
    const struct replica_spec *worker = &job->replicas[REPLICA_WORKER];
    int32_t workers = worker->present ? (int32_t)worker->replicas.value : 0;
    if (job->run_policy.scheduling.min_available.set)
        return (int32_t)job->run_policy.scheduling.min_available.value;
    return job->replicas[REPLICA_MASTER].present +
           (job->elastic.present ? (int32_t)job->elastic.min_replicas.value : workers);
}

/* What stands beside the pods is there, and as the job says it by now. */
static void check_company(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    const struct elastic_policy *elastic = &truth->job->elastic;
    bool grouped = truth->options.gang.scheduler != GANG_NONE;
    bool scaled = truth->options.autoscaling && elastic->metrics;
    check(s, grouped == (truth->pod_group.name != NULL), "the PodGroup is missing");
    check(s, !grouped || truth->pod_group.spec.min_member == simulation_gang_of(truth->job),
          "the PodGroup says %d", truth->pod_group.spec.min_member);
    check(s, scaled == (truth->autoscaler.name != NULL), "the autoscaler is missing");
    check(s,
          !scaled || (truth->autoscaler.spec.min_replicas == elastic->min_replicas.value &&
                      truth->autoscaler.spec.max_replicas == elastic->max_replicas.value),
          "the autoscaler says %d to %d", truth->autoscaler.spec.min_replicas,
          truth->autoscaler.spec.max_replicas);
}

/* With an operator that never gives up, a pod that dies with its node stays, and
 * holds up others. */
static bool is_held_up(const struct cluster *truth)
{
    bool held = false;
    for (size_t i = 0; i < truth->pod_count; i++)
        held |= truth->pods[i].deleted_ms && truth->pods[i].node_lost_ms;
    return held && !truth->options.node_lost_ms && !truth->options.overdue_ms;
}

static void check_work(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    size_t places = 0;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &truth->job->replicas[type];
        places += replica->present ? (size_t)replica->replicas.value : 0;
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
            bool there = is_excused(s, type, i);
            for (size_t k = 0; k < truth->pod_count; k++)
                there |=
                    truth->pods[k].type == (enum replica_type)type && truth->pods[k].index == i;
            check(s, there, "replica %d of type %d is missing", i, type);
        }
    }
    check(s, truth->pod_count <= places && truth->service_count <= places, "something is left");
    check_company(s);
}

void simulation_check_overdue(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    for (size_t i = 0; i < truth->pod_count && wants_work(s, &truth->status); i++)
        check(s,
              !is_overdue(truth, &truth->pods[i]) ||
                  condition_is_true(&truth->status, CONDITION_WAITING),
              "nobody is told that %s does not end", truth->pods[i].name);
}

/* Its name is how its peers find it; the system's end of a pod is nobody's last word. */
static void check_living(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    for (size_t i = 0; i < truth->pod_count; i++) {
        const struct pod *pod = &truth->pods[i];
        check(s, pod->deleted_ms || pod->phase != POD_FAILED || !pod->disrupted,
              "the system ended %s, and it stays", pod->name);
        check(s,
              pod->deleted_ms || !simulation_is_admitted(truth) ||
                  cluster_service(s->truth, pod->name),
              "%s is there without its service", pod->name);
    }
}

static void check_places(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    const struct history *history = &truth->status.history;
    const char *avoided = avoided_text(s, history);
    for (size_t i = 0; i < truth->pod_count; i++)
        check(s, truth->pods[i].deleted_ms || !must_move(history, &truth->pods[i], avoided),
              "%s stays on a node that is avoided, or waits for one", truth->pods[i].name);
}

void simulation_check_rest(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    enum clean_pod_policy clean = truth->job->run_policy.clean_pod_policy;
    bool finished = condition_finished(&truth->status);
    if ((!finished && truth->job->invalid && !truth->job->run_policy.suspend) || is_held_up(truth))
        return;
    for (size_t i = 0; i < truth->pod_count && !finished; i++)
        check(s, !simulation_is_lost(truth, &truth->pods[i]), "%s is lost and stays",
              truth->pods[i].name);
    if (!finished && wants_work(s, &truth->status)) {
        check_places(s);
        check_work(s);
        check_living(s);
        return;
    }
    check(s, !truth->pod_group.name && !truth->autoscaler.name, "something is left beside pods");
    if (!finished || clean == CLEAN_ALL)
        check(s, truth->pod_count == 0 && truth->service_count == 0, "a pod or service is left");
    else if (clean == CLEAN_RUNNING)
        check(s, alive(s) == 0, "a pod is left running");
    else if (finished && condition_is_true(&truth->status, CONDITION_SUCCEEDED))
        for (size_t i = 0; i < truth->pod_count; i++)
            check(s, truth->pods[i].phase != POD_PENDING, "a pod may begin after the end");
}
