#include "operator/reconcile/reconcile.h"

#include "base/contract.h"
#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/managed_by.h"
#include "operator/job/names.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/observe.h"
#include "operator/reconcile/pass.h"
#include "operator/reconcile/policy_autoscaler.h"
#include "operator/reconcile/policy_cleanup.h"
#include "operator/reconcile/policy_deadline.h"
#include "operator/reconcile/policy_gang.h"
#include "operator/reconcile/policy_success.h"
#include "operator/reconcile/policy_suspend.h"

#include <inttypes.h>
#include <string.h>

#define REASON_CREATED    API_KIND "Created"
#define REASON_LARGE      API_KIND "Large"
#define REASON_RUNNING    API_KIND "Running"
#define REASON_RESTARTING API_KIND "Restarting"
#define REASON_SUSPENDED  API_KIND "Suspended"
#define REASON_RESUMED    API_KIND "Resumed"
#define REASON_SUCCEEDED  API_KIND "Succeeded"
#define REASON_FAILED     API_KIND "Failed"
#define REASON_INVALID    API_KIND "FailedValidation"

/* ---- the life of a job ---- */

/* Of more it is said what it costs: etcd takes 1.5 MiB, and the operator holds all jobs. */
enum { LARGE_BYTES = 256 << 10 };

static void set_created(struct pass *pass)
{
    size_t bytes = pass->world->job_bytes;
    if (pass->status.condition_count > 0)
        return;
    pass->status.history.known = true; /* from its beginning on */
    pass_condition(pass, CONDITION_CREATED, true, REASON_CREATED,
                   pass_text(pass, "PyTorchJob %s is created.", pass->job->name));
    if (bytes > LARGE_BYTES)
        pass_event(pass, EVENT_WARNING, REASON_LARGE,
                   pass_text(pass,
                             "PyTorchJob %s is %zu KiB of text, which the API server and the "
                             "operator keep in memory: put scripts and data into a ConfigMap or a "
                             "volume.",
                             pass->job->name, bytes >> 10));
}

/* What of the templates is not followed; said when the job starts. */
static void warn_ignored_template_fields(struct pass *pass)
{
    const char *gang = pass->world->options.gang.scheduler_name;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct pod_template *template_ = &pass->job->replicas[type].template_;
        if (template_->restart_policy)
            pass_event(pass, EVENT_WARNING, "SetPodTemplateRestartPolicy",
                       "Restart policy in pod template will be overwritten by restart policy in "
                       "replica spec");
        if (gang && template_->scheduler_name && strcmp(template_->scheduler_name, gang) != 0)
            pass_event(pass, EVENT_WARNING, "SetPodTemplateSchedulerName",
                       "Another scheduler is specified when gang-scheduling is enabled and it will "
                       "not be overwritten");
    }
}

/* The job is active from here on, for the first time (once it is `admitted`: time in a queue is no
 * time of the job) or again. Counted before it: what was seen of the pods belongs to the time
 * before. */
static void set_started(struct pass *pass, struct news *news, bool admitted)
{
    bool resumed = condition_is_true(&pass->status, CONDITION_SUSPENDED);
    if (resumed) {
        const char *message = pass_text(pass, "PyTorchJob %s is resumed.", pass->job->name);
        pass_condition(pass, CONDITION_SUSPENDED, false, REASON_RESUMED, message);
        /* The last condition is the state: "Suspended" would be wrong from here on. */
        pass_condition(pass, CONDITION_RESTARTING, true, REASON_RESUMED, message);
        pass_event(pass, EVENT_NORMAL, REASON_RESUMED, message);
        history_start_over(&pass->status.history);
        if (pass->job->run_policy.restart_scope == SCOPE_JOB && pass->status.start_ms)
            news->regroup = true;
    }
    if (!resumed && (pass->status.start_ms || !admitted))
        return;
    warn_ignored_template_fields(pass);
    pass->status.start_ms = pass->world->now_ms;
}

/* Deletes the PodGroup and the HorizontalPodAutoscaler of a job that needs no pods any more. */
static void delete_podgroup_hpa(struct pass *pass)
{
    policy_gang_delete(pass->world, pass->plan);
    policy_autoscaler_delete(pass->world, pass->plan);
}

static void clean_up(struct pass *pass)
{
    delete_podgroup_hpa(pass);
    policy_cleanup(pass->job->run_policy.clean_pod_policy,
                   condition_is_true(&pass->status, CONDITION_SUCCEEDED), &pass->view, pass->plan);
    pass_requeue(pass, pass->view.recheck_ms);
}

static void finish(struct pass *pass, enum condition_type type, enum event_type event,
                   const char *reason, const char *message)
{
    pass_condition(pass, type, true, reason, message);
    pass_event(pass, event, reason, message);
    pass->status.completion_ms = pass->world->now_ms;
    observe_rest(pass);
    clean_up(pass);
    pass_requeue(pass, policy_expiry_ms(pass->job, &pass->status));
}

static void succeed(struct pass *pass)
{
    const struct job *job = pass->job;
    const char *message =
        job->replicas[REPLICA_MASTER].present
            ? pass_text(pass, "PyTorchJob %s is successfully completed.", job->name)
            : pass_text(pass, "PyTorchJob %s/%s successfully completed.", job->namespace_,
                        job->name);
    finish(pass, CONDITION_SUCCEEDED, EVENT_NORMAL, REASON_SUCCEEDED, message);
}

/* Whose failure it was: its pod may be gone before anybody looks. */
static const char *last_failure_text(struct pass *pass, const struct pod *pod)
{
    const struct pod_end *end = pod ? &pod->end : NULL;
    if (!pod)
        return "";
    if (!end->container)
        return pass_text(pass, RECONCILE_LAST_FAILURE "pod %s)", pod->name);
    return pass_text(
        pass, RECONCILE_LAST_FAILURE "pod %s, container %s, exit code %" PRId32 "%s%s)", pod->name,
        end->container, end->code, end->reason ? ": " : "", end->reason ? end->reason : "");
}

static void fail_by_limit(struct pass *pass, const struct pod *culprit)
{
    finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
           pass_text(pass, "Job %s has failed because it has reached the specified backoff limit%s",
                     pass->job->name, last_failure_text(pass, culprit)));
}

static void fail_by(struct pass *pass, const struct pod *pod)
{
    const char *type = names_replica_type(pod->type), *culprit = last_failure_text(pass, pod);
    if (pass->job->replicas[pod->type].restart_policy == RESTART_EXIT_CODE)
        finish(pass, CONDITION_FAILED, EVENT_WARNING, REASON_FAILED,
               pass_text(pass, "job \"%s\" is failing because \"%s\" replica(s) failed.%s",
                         pass->job->name, type, culprit));
    else
        finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
               pass_text(pass,
                         "PyTorchJob %s is failed because %" PRId32 " %s replica(s) failed.%s",
                         pass->job->name, pass->status.replicas[pod->type].failed, type, culprit));
}

/* backoffLimit restarts are granted; the failure after them fails the job. */
static bool backoff_exceeded(const struct pass *pass)
{
    struct optional limit = pass->job->run_policy.backoff_limit;
    return limit.set && limit.value >= 0 && pass->status.history.failures > limit.value;
}

static enum replica_type deciding_type(const struct job *job)
{
    return job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
}

static bool is_running(const struct pass *pass)
{
    return pass->status.replicas[deciding_type(pass->job)].active > 0;
}

/* A warning is what has failed; what people delete, drain and evict is not. */
static const char *restarting_text(struct pass *pass, const struct news *news,
                                   enum event_type *ret_type)
{
    const struct replica_status *replicas = pass->status.replicas;
    enum replica_type type = replicas[REPLICA_MASTER].failed > 0 ? REPLICA_MASTER : REPLICA_WORKER;
    const char *name = pass->job->name, *leaving = observe_leaving(pass, type);
    *ret_type = EVENT_WARNING;
    if (news->failures > 0 || (replicas[type].failed > 0 && !leaving))
        return pass_text(pass,
                         "PyTorchJob %s is restarting because %" PRId32 " %s replica(s) failed.",
                         name, news->failures > 0 ? news->failures : replicas[type].failed,
                         names_replica_type(news->failures > 0 ? news->failed_type : type));
    *ret_type = EVENT_NORMAL;
    if (replicas[type].failed > 0)
        return pass_text(pass, "PyTorchJob %s is restarting because %" PRId32 " %s pod(s) %s.",
                         name, replicas[type].failed, names_replica_type(type), leaving);
    if (is_running(pass))
        return pass_text(pass, "PyTorchJob %s is restarting because pods of it are gone.", name);
    return pass_text(pass, "PyTorchJob %s is restarting because no %s replica is running.", name,
                     names_replica_type(deciding_type(pass->job)));
}

/* Running while what decides runs and nothing is failed; Restarting from a failure, from the loss
 * of what ran, or from the end of an attempt, until then. */
static void set_state(struct pass *pass, const struct news *news)
{
    const struct job *job = pass->job;
    const struct replica_status *replicas = pass->status.replicas;
    enum replica_type failed =
        replicas[REPLICA_MASTER].failed > 0 ? REPLICA_MASTER : REPLICA_WORKER;
    bool running = is_running(pass) && replicas[failed].failed == 0 && !news->regroup;
    bool restarting = replicas[failed].failed > 0 || news->regroup ||
                      (!running && condition_is_true(&pass->status, CONDITION_RUNNING));
    enum event_type type;
    const char *message = restarting_text(pass, news, &type);
    bool begins = restarting && !condition_is_true(&pass->status, CONDITION_RESTARTING);
    if (begins)
        pass_condition(pass, CONDITION_RESTARTING, true, REASON_RESTARTING, message);
    if (begins || news->failures > 0)
        pass_event(pass, type, REASON_RESTARTING, message);
    if (running)
        pass_condition(
            pass, CONDITION_RUNNING, true, REASON_RUNNING,
            job->replicas[REPLICA_MASTER].present
                ? pass_text(pass, "PyTorchJob %s is running.", job->name)
                : pass_text(pass, "PyTorchJob %s/%s is running.", job->namespace_, job->name));
}

/* Tells what stands in the way: each blocker once. */
static void set_waiting(struct pass *pass, const struct blocker *blocker)
{
    if (condition_wait(&pass->status, blocker->reason, blocker->message, pass->world->now_ms))
        pass_event(pass, blocker->expected ? EVENT_NORMAL : EVENT_WARNING, blocker->reason,
                   blocker->message);
}

/* What was refused may be what an expected blocker waits for, and stands behind no pod's trouble:
 * a missing right concerns all of them. */
static void set_refused_blocker(const struct pass *pass, struct blocker *blocker)
{
    const char *refused = pass->world->refused;
    if (refused && (!blocker->reason || blocker->expected))
        *blocker = (struct blocker){.reason = "Refused", .message = refused};
}

/* The job goes on: its pods and what stands beside them become as they shall be. */
static void reconcile_children(struct pass *pass, const struct news *news, struct blocker *blocker)
{
    set_state(pass, news);
    pass->status.history.restarts = pass->status.history.failures;
    if (news->regroup)
        history_next_attempt(&pass->status.history);
    policy_gang_sync(pass->world, pass->plan);
    children_sync(pass->plan, pass->world, &pass->view, &pass->status.history, blocker);
    set_refused_blocker(pass, blocker);
    policy_autoscaler_sync(pass->world, pass->plan, blocker);
    policy_waiting(pass->job, &pass->view, blocker, pass->arena);
    set_waiting(pass, blocker);
    pass_requeue(pass, policy_deadline_ms(pass->job, &pass->status));
    pass_requeue(pass, pass->view.recheck_ms);
}

static bool deadline_exceeded(const struct pass *pass)
{
    /* a job that starts with this pass has had no time yet */
    return pass->status.start_ms == pass->world->status->start_ms &&
           pass->world->now_ms >= policy_deadline_ms(pass->job, &pass->status);
}

static void fail_by_deadline(struct pass *pass)
{
    finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
           pass_text(pass, "Job %s has failed because it was active longer than specified deadline",
                     pass->job->name));
}

static void pass_active(struct pass *pass)
{
    const struct job *job = pass->job;
    set_created(pass);
    for (int type = 0; type < REPLICA_TYPES; type++)
        history_trim(&pass->status.history, type, (int32_t)job->replicas[type].replicas.value);
    struct news news = observe(pass);
    struct blocker blocker = policy_gang_blocker(pass->world, pass->arena);
    set_started(pass, &news, !blocker.reason);
    observe_count(pass);
    if (policy_success(job, &pass->status))
        succeed(pass);
    else if (news.fatal)
        fail_by(pass, news.fatal);
    else if (backoff_exceeded(pass))
        fail_by_limit(pass, news.culprit);
    else if (deadline_exceeded(pass))
        fail_by_deadline(pass);
    else
        reconcile_children(pass, &news, &blocker);
}

static void pass_suspended(struct pass *pass)
{
    set_created(pass);
    delete_podgroup_hpa(pass);
    const char *message = pass_text(pass, "PyTorchJob %s is suspended.", pass->job->name);
    if (condition_is_true(&pass->status, CONDITION_RUNNING))
        pass_condition(pass, CONDITION_RUNNING, false, REASON_SUSPENDED, message);
    if (pass_condition(pass, CONDITION_SUSPENDED, true, REASON_SUSPENDED, message))
        pass_event(pass, EVENT_NORMAL, REASON_SUSPENDED, message);
    set_waiting(pass, &(struct blocker){.reason = NULL}); /* of a resumption that was not seen */
    observe_rest(pass);
    children_delete_all(pass->plan, &pass->view);
    pass_requeue(pass, pass->view.recheck_ms);
}

static void pass_finished(struct pass *pass)
{
    observe_rest(pass);
    int64_t expiry_ms = policy_expiry_ms(pass->job, &pass->status);
    if (pass->world->now_ms >= expiry_ms) {
        plan_add(pass->plan, (struct action){.kind = ACTION_DELETE_JOB,
                                             .name = pass->job->name,
                                             .uid = pass->job->uid});
        return;
    }
    clean_up(pass);
    pass_requeue(pass, expiry_ms);
}

static void pass_invalid(struct pass *pass)
{
    set_created(pass);
    pass_condition(pass, CONDITION_FAILED, true, REASON_INVALID, pass->job->invalid);
    pass_event(pass, EVENT_WARNING, REASON_INVALID, pass->job->invalid);
    pass->status.completion_ms = pass->world->now_ms;
}

/* The job with as many replicas as are seen or remembered: what it says of them may be the slip. */
static const struct job *job_as_seen(const struct pass *pass)
{
    const struct history *history = &pass->status.history;
    struct job *job = arena_new(pass->arena, struct job);
    *job = *pass->job;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        struct replica_spec *replica = &job->replicas[type];
        int64_t seen = history->completed_count[type];
        for (size_t i = 0; i < pass->view.pods.count; i++) {
            const struct child *child = &pass->view.pods.items[i];
            if (child->type == (enum replica_type)type && child->index >= seen)
                seen = child->index + 1;
        }
        replica->present |= pass->status.replicas[type].present || seen > 0;
        replica->replicas.value = seen;
    }
    return job;
}

/* The specification was spoilt after the job had started: nothing is made, deleted or failed by it
 * until that is mended, as that would lose work over a slip. What needs none of it goes on: the
 * counts, and the end of a job whose master is done. A deadline does, too, unless it is the slip.
 */
static void pass_spoilt(struct pass *pass)
{
    struct blocker blocker = {.reason = REASON_INVALID, .message = pass->job->invalid};
    set_created(pass);
    if (condition_is_true(&pass->status, CONDITION_SUSPENDED)) {
        set_waiting(pass, &blocker);
        return;
    }
    pass->job = job_as_seen(pass);
    observe_completions(pass);
    observe_count(pass);
    if (history_is_complete(&pass->status.history, REPLICA_MASTER, 0))
        succeed(pass);
    else if (deadline_exceeded(pass))
        fail_by_deadline(pass);
    else
        pass_requeue(pass, policy_deadline_ms(pass->job, &pass->status));
    set_waiting(pass, &blocker);
}

/* Without sight of its children nothing can be decided about a job: that is told, in the words of
 * the API server, which name the right that is missing. */
static void pass_blind(struct pass *pass)
{
    struct blocker blocker = {.reason = "Forbidden", .message = pass->world->blind};
    if (condition_finished(&pass->status))
        return;
    if (pass->job->run_policy.suspend && condition_is_true(&pass->status, CONDITION_SUSPENDED))
        blocker.reason = NULL; /* it sleeps, and is to */
    set_created(pass);
    set_waiting(pass, &blocker);
}

/* ---- the pass ---- */

struct plan *reconcile(const struct world *world, struct arena *arena)
{
    const struct job *job = world->job;
    if (!managed_by_us(job) || job->deleting)
        return plan_open(arena);
    struct pass pass = pass_open(world, arena);
    if (world->blind)
        pass_blind(&pass);
    else if (condition_finished(&pass.status))
        pass_finished(&pass);
    else if (job->invalid && !pass.status.start_ms)
        pass_invalid(&pass);
    else if (policy_suspended(job, &pass.status, &pass.view))
        pass_suspended(&pass);
    else if (job->invalid)
        pass_spoilt(&pass);
    else
        pass_active(&pass);
    pass_publish(&pass);
    return pass.plan;
}
