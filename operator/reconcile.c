#include "operator/reconcile.h"

#include "base/contract.h"
#include "base/mem.h"
#include "operator/children.h"
#include "operator/condition.h"
#include "operator/history.h"
#include "operator/job_status.h"
#include "operator/names.h"
#include "operator/policy_cleanup.h"
#include "operator/policy_deadline.h"
#include "operator/policy_success.h"
#include "operator/restart.h"

#include <inttypes.h>
#include <string.h>

#define REASON_CREATED    API_KIND "Created"
#define REASON_RUNNING    API_KIND "Running"
#define REASON_RESTARTING API_KIND "Restarting"
#define REASON_SUSPENDED  API_KIND "Suspended"
#define REASON_RESUMED    API_KIND "Resumed"
#define REASON_SUCCEEDED  API_KIND "Succeeded"
#define REASON_FAILED     API_KIND "Failed"
#define REASON_INVALID    API_KIND "FailedValidation"

struct pass {
    const struct world *world;
    const struct job *job;
    struct arena *arena;
    struct plan *plan;
    struct view view;
    struct job_status status; /* what it will be */
};

/* What the pods of the current attempt tell that was not known before. */
struct news {
    int32_t failures; /* not counted so far */
    enum replica_type failed_type;
    bool regroup;            /* with SCOPE_JOB: this attempt cannot go on */
    const struct pod *fatal; /* its failure fails the job; NULL: none */
};

#define text(pass, ...) arena_printf((pass)->arena, __VA_ARGS__)

static void add_event(struct pass *pass, enum event_type type, const char *reason,
                      const char *message)
{
    plan_add(pass->plan,
             (struct action){
                 .kind = ACTION_EVENT, .event_type = type, .reason = reason, .message = message});
}

static bool set_condition(struct pass *pass, enum condition_type type, bool value,
                          const char *reason, const char *message)
{
    return condition_set(&pass->status, type, value, reason, message, pass->world->now_ms);
}

static void requeue(struct pass *pass, int64_t at_ms)
{
    if (at_ms != POLICY_NEVER)
        plan_add(pass->plan, (struct action){.kind = ACTION_REQUEUE, .at_ms = at_ms});
}

static bool is_current(const struct pass *pass, const struct child *child)
{
    return children_wanted(pass->job, child) &&
           !children_is_old_attempt(pass->job, &pass->status.history, child->pod);
}

/* ---- counting ---- */

/* The job is under way: its counters follow the pods. */
static void recount(struct pass *pass)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &pass->job->replicas[type];
        struct replica_status *count = &pass->status.replicas[type];
        *count = (struct replica_status){.present = replica->present};
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++)
            count->succeeded += history_is_complete(&pass->status.history, type, i);
    }
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        if (!children_wanted(pass->job, child) ||
            history_is_complete(&pass->status.history, child->type, child->index))
            continue;
        struct replica_status *count = &pass->status.replicas[child->type];
        if (child->pod->phase == POD_FAILED)
            count->failed++;
        else if (child->pod->phase == POD_RUNNING && (child->deleting || !is_current(pass, child)))
            count->failed++;
        else if (child->pod->phase == POD_RUNNING)
            count->active++;
    }
}

/* The job is suspended or finished: what was reached stays or grows, and what still runs is told,
 * so that nobody gives its devices to others too early. */
static void recount_active(struct pass *pass)
{
    int32_t succeeded[REPLICA_TYPES] = {0};
    for (int type = 0; type < REPLICA_TYPES; type++) {
        pass->status.replicas[type].present = pass->job->replicas[type].present;
        pass->status.replicas[type].active = 0;
    }
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct pod *pod = pass->view.pods.items[i].pod;
        pass->status.replicas[pod->type].active += pod->phase == POD_RUNNING;
        succeeded[pod->type] += restart_succeeded(pod);
    }
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (succeeded[type] > pass->status.replicas[type].succeeded)
            pass->status.replicas[type].succeeded = succeeded[type];
}

static void tell_exit(struct pass *pass, const struct pod *pod)
{
    if (pod->exited)
        add_event(pass, EVENT_NORMAL, "ExitedWithCode",
                  text(pass, "Pod: %s.%s exited with code %" PRId32, pass->job->namespace_,
                       pod->name, pod->exit_code));
}

/* Records completions and failures of the current attempt. */
static struct news observe(struct pass *pass)
{
    struct news news = {0};
    struct history *history = &pass->status.history;
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        const struct pod *pod = child->pod;
        if (!is_current(pass, child) || history_is_complete(history, pod->type, pod->index))
            continue;
        if (restart_succeeded(pod)) {
            history_complete(history, pod->type, pod->index, pass->arena);
            tell_exit(pass, pod);
            continue;
        }
        int32_t fresh = history_record(history, pod, restart_failures(pod), pass->arena);
        if (fresh > 0 && pod->phase == POD_FAILED)
            tell_exit(pass, pod);
        if (fresh > 0 && news.failures == 0)
            news.failed_type = pod->type;
        news.failures += fresh;
        enum restart_policy policy = pass->job->replicas[pod->type].restart_policy;
        enum restart_verdict verdict = restart_judge(policy, pod);
        if (verdict == RESTART_FAILS_JOB && !news.fatal)
            news.fatal = pod;
        news.regroup |= fresh > 0 || verdict == RESTART_REPLACE || child->deleting;
    }
    bool group = pass->job->run_policy.restart_scope == SCOPE_JOB;
    news.regroup &= group;
    history->failures += group && news.failures > 1 ? 1 : news.failures;
    return news;
}

/* ---- the life of a job ---- */

static void created(struct pass *pass)
{
    if (pass->status.condition_count == 0)
        set_condition(pass, CONDITION_CREATED, true, REASON_CREATED,
                      text(pass, "PyTorchJob %s is created.", pass->job->name));
}

/* All replicas begin again. Pods of the attempt before are told by their number. */
static void next_attempt(struct pass *pass)
{
    pass->status.history.attempt++;
    history_forget_complete(&pass->status.history);
}

/* The job is active from here on, for the first time or again. Counted before it: what was seen of
 * the pods belongs to the time before. */
static void start(struct pass *pass, struct news *news)
{
    bool resumed = condition_is_true(&pass->status, CONDITION_SUSPENDED);
    if (resumed) {
        const char *message = text(pass, "PyTorchJob %s is resumed.", pass->job->name);
        set_condition(pass, CONDITION_SUSPENDED, false, REASON_RESUMED, message);
        /* The last condition is the state: "Suspended" would be wrong from here on. */
        set_condition(pass, CONDITION_RESTARTING, true, REASON_RESUMED, message);
        add_event(pass, EVENT_NORMAL, REASON_RESUMED, message);
        if (pass->job->run_policy.restart_scope == SCOPE_JOB && pass->status.start_ms)
            news->regroup = true;
    }
    if (resumed || !pass->status.start_ms)
        pass->status.start_ms = pass->world->now_ms;
}

static void finish(struct pass *pass, enum condition_type type, enum event_type event,
                   const char *reason, const char *message)
{
    set_condition(pass, type, true, reason, message);
    add_event(pass, event, reason, message);
    pass->status.completion_ms = pass->world->now_ms;
    recount_active(pass);
    policy_cleanup(pass->job->run_policy.clean_pod_policy, &pass->view, pass->plan);
    requeue(pass, policy_expiry_ms(pass->job, &pass->status));
}

static void succeed(struct pass *pass)
{
    const struct job *job = pass->job;
    const char *message =
        job->replicas[REPLICA_MASTER].present
            ? text(pass, "PyTorchJob %s is successfully completed.", job->name)
            : text(pass, "PyTorchJob %s/%s successfully completed.", job->namespace_, job->name);
    finish(pass, CONDITION_SUCCEEDED, EVENT_NORMAL, REASON_SUCCEEDED, message);
}

static void fail_by(struct pass *pass, const struct pod *pod)
{
    const char *type = names_replica_type(pod->type);
    if (pass->job->replicas[pod->type].restart_policy == RESTART_EXIT_CODE)
        finish(pass, CONDITION_FAILED, EVENT_WARNING, REASON_FAILED,
               text(pass, "job \"%s\" is failing because \"%s\" replica(s) failed.",
                    pass->job->name, type));
    else
        finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
               text(pass, "PyTorchJob %s is failed because %" PRId32 " %s replica(s) failed.",
                    pass->job->name, pass->status.replicas[pod->type].failed, type));
}

/* backoffLimit restarts are granted; the failure after them fails the job. */
static bool backoff_exceeded(const struct pass *pass)
{
    struct optional limit = pass->job->run_policy.backoff_limit;
    return limit.set && limit.value >= 0 && pass->status.history.failures > limit.value;
}

static bool is_running(const struct pass *pass)
{
    bool master = pass->job->replicas[REPLICA_MASTER].present;
    return pass->status.replicas[master ? REPLICA_MASTER : REPLICA_WORKER].active > 0;
}

static const char *restarting_text(struct pass *pass, enum replica_type type, int32_t count)
{
    return text(pass, "PyTorchJob %s is restarting because %" PRId32 " %s replica(s) failed.",
                pass->job->name, count, names_replica_type(type));
}

/* Running while what decides runs and nothing is failed; Restarting from a failure, or from the
 * loss of what ran, until then. */
static void set_state(struct pass *pass, const struct news *news)
{
    const struct job *job = pass->job;
    const struct replica_status *replicas = pass->status.replicas;
    enum replica_type failed =
        replicas[REPLICA_MASTER].failed > 0 ? REPLICA_MASTER : REPLICA_WORKER;
    bool running = is_running(pass) && replicas[failed].failed == 0;
    bool restarting = replicas[failed].failed > 0 ||
                      (!running && condition_is_true(&pass->status, CONDITION_RUNNING));
    const char *message =
        text(pass, "PyTorchJob %s is restarting because its replicas are gone.", job->name);
    if (news->failures > 0)
        message = restarting_text(pass, news->failed_type, news->failures);
    else if (replicas[failed].failed > 0)
        message = restarting_text(pass, failed, replicas[failed].failed);
    bool begins = restarting && !condition_is_true(&pass->status, CONDITION_RESTARTING);
    if (begins)
        set_condition(pass, CONDITION_RESTARTING, true, REASON_RESTARTING, message);
    if (begins || news->failures > 0)
        add_event(pass, EVENT_WARNING, REASON_RESTARTING, message);
    if (running)
        set_condition(pass, CONDITION_RUNNING, true, REASON_RUNNING,
                      job->replicas[REPLICA_MASTER].present
                          ? text(pass, "PyTorchJob %s is running.", job->name)
                          : text(pass, "PyTorchJob %s/%s is running.", job->namespace_, job->name));
}

static void pass_active(struct pass *pass)
{
    const struct job *job = pass->job;
    created(pass);
    for (int type = 0; type < REPLICA_TYPES; type++)
        history_trim(&pass->status.history, type, (int32_t)job->replicas[type].replicas.value);
    struct news news = observe(pass);
    start(pass, &news);
    recount(pass);
    int64_t deadline_ms = policy_deadline_ms(job, &pass->status);
    if (policy_success(job, &pass->status)) {
        succeed(pass);
    } else if (news.fatal) {
        fail_by(pass, news.fatal);
    } else if (backoff_exceeded(pass)) {
        finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
               text(pass, "Job %s has failed because it has reached the specified backoff limit",
                    job->name));
    } else if (pass->world->now_ms >= deadline_ms && pass->world->status->start_ms) {
        finish(pass, CONDITION_FAILED, EVENT_NORMAL, REASON_FAILED,
               text(pass, "Job %s has failed because it was active longer than specified deadline",
                    job->name));
    } else {
        set_state(pass, &news);
        if (news.regroup)
            next_attempt(pass);
        children_sync(pass->plan, pass->world, &pass->view, &pass->status.history);
        requeue(pass, deadline_ms);
    }
}

static void pass_suspended(struct pass *pass)
{
    created(pass);
    const char *message = text(pass, "PyTorchJob %s is suspended.", pass->job->name);
    if (condition_is_true(&pass->status, CONDITION_RUNNING))
        set_condition(pass, CONDITION_RUNNING, false, REASON_SUSPENDED, message);
    if (set_condition(pass, CONDITION_SUSPENDED, true, REASON_SUSPENDED, message))
        add_event(pass, EVENT_NORMAL, REASON_SUSPENDED, message);
    recount_active(pass);
    children_delete_all(pass->plan, &pass->view);
}

static void pass_finished(struct pass *pass)
{
    recount_active(pass);
    int64_t expiry_ms = policy_expiry_ms(pass->job, &pass->status);
    if (pass->world->now_ms >= expiry_ms) {
        plan_add(pass->plan, (struct action){.kind = ACTION_DELETE_JOB,
                                             .name = pass->job->name,
                                             .uid = pass->job->uid});
        return;
    }
    policy_cleanup(pass->job->run_policy.clean_pod_policy, &pass->view, pass->plan);
    requeue(pass, expiry_ms);
}

/* A job that never started fails. One whose specification was spoilt while it runs is left as it is
 * until that is mended: ending it would lose work over a slip. */
static void pass_invalid(struct pass *pass)
{
    if (pass->status.start_ms) {
        add_event(pass, EVENT_WARNING, REASON_INVALID, pass->job->invalid);
        return;
    }
    created(pass);
    set_condition(pass, CONDITION_FAILED, true, REASON_INVALID, pass->job->invalid);
    add_event(pass, EVENT_WARNING, REASON_INVALID, pass->job->invalid);
    pass->status.completion_ms = pass->world->now_ms;
}

/* ---- the pass ---- */

static bool is_managed_here(const struct job *job)
{
    const char *manager = job->run_policy.managed_by;
    return !manager || strcmp(manager, API_MANAGED_BY) == 0;
}

static void publish(struct pass *pass)
{
    if (job_status_equal(pass->world->status, &pass->status))
        return;
    struct job_status *status = arena_new(pass->arena, struct job_status);
    *status = pass->status;
    plan_add(pass->plan, (struct action){.kind = ACTION_SET_STATUS, .status = status});
}

struct plan *reconcile(const struct world *world, struct arena *arena)
{
    struct pass pass = {
        .world = world, .job = world->job, .arena = arena, .plan = plan_open(arena)};
    if (!is_managed_here(world->job) || world->job->deleting)
        return pass.plan;
    pass.view = view_open(world, arena);
    pass.status = *world->status;
    pass.status.history = history_copy(&world->status->history, arena);

    if (world->job->invalid)
        pass_invalid(&pass);
    else if (condition_finished(&pass.status))
        pass_finished(&pass);
    else if (world->job->run_policy.suspend)
        pass_suspended(&pass);
    else
        pass_active(&pass);
    publish(&pass);
    return pass.plan;
}
