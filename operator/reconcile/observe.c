#include "operator/reconcile/observe.h"

#include "base/contract.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/incident.h"
#include "operator/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

static bool is_current(const struct pass *pass, const struct child *child)
{
    return children_wanted(pass->job, child) &&
           !children_is_old_attempt(pass->job, &pass->status.history, child->pod);
}

/* Whether a pod that runs counts no more. */
static bool is_leaving(const struct pass *pass, const struct child *child)
{
    return child->deleting || child->lost || !is_current(pass, child);
}

void observe_count(struct pass *pass)
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
            count->failed += !child->pod->waited_in_vain;
        else if (child->pod->phase == POD_RUNNING && is_leaving(pass, child))
            count->failed++;
        else if (child->pod->phase == POD_RUNNING)
            count->active++;
    }
}

void observe_rest(struct pass *pass)
{
    int32_t succeeded[REPLICA_TYPES] = {0};
    bool finished = condition_finished(&pass->status);
    for (int type = 0; type < REPLICA_TYPES; type++) {
        if (!finished)
            pass->status.replicas[type].present = pass->job->replicas[type].present;
        pass->status.replicas[type].active = 0;
    }
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct pod *pod = pass->view.pods.items[i].pod;
        bool waiting = pod->phase == POD_PENDING || pod->phase == POD_UNKNOWN;
        pass->status.replicas[pod->type].active +=
            pod->phase == POD_RUNNING || (waiting && !finished);
        succeeded[pod->type] += restart_succeeded(pod);
    }
    for (int type = 0; type < REPLICA_TYPES; type++) {
        struct replica_status *count = &pass->status.replicas[type];
        if (succeeded[type] > count->succeeded)
            count->succeeded = succeeded[type];
        count->present |= pass->job->replicas[type].present && (count->active || count->succeeded);
    }
}

static const char *exit_message(struct pass *pass, const struct pod *pod, const struct pod_end *end)
{
    bool main = strcmp(end->container, API_CONTAINER_NAME) == 0;
    return pass_text(pass, "Pod: %s.%s%s%s exited with code %" PRId32 "%s%s", pass->job->namespace_,
                     pod->name, main ? "" : ", container ", main ? "" : end->container, end->code,
                     end->reason ? ": " : "", end->reason ? end->reason : "");
}

static void add_exit_event(struct pass *pass, const struct pod *pod, const struct pod_end *end)
{
    if (end->container)
        pass_event(pass, EVENT_NORMAL, "ExitedWithCode", exit_message(pass, pod, end));
}

/* With SCOPE_JOB a pod that vanished, as with its node, ends the attempt like one that failed: its
 * peers wait for it in vain. One that was not made yet is told from it by memory; so is one that
 * only waited for the master and is made again: nobody has met it. */
static bool has_vanished(struct pass *pass)
{
    struct history *history = &pass->status.history;
    bool whole = true, vanished = false;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &pass->job->replicas[type];
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
            const struct child *child = view_find(&pass->view.pods, type, i);
            bool there = child && is_current(pass, child);
            if (history_is_complete(history, type, i) || (there && !child->pod->waited_in_vain))
                continue;
            whole = false;
            if (there && i < history->formed[type])
                history->formed[type] = i;
            vanished |= i < history->formed[type];
        }
    }
    for (int type = 0; type < REPLICA_TYPES && whole; type++)
        if (pass->job->replicas[type].present)
            history->formed[type] = (int32_t)pass->job->replicas[type].replicas.value;
    return vanished;
}

/* Whether the pod's part in the job is done. */
static bool is_done(struct pass *pass, const struct pod *pod)
{
    if (!restart_succeeded(pod))
        return false;
    history_complete(&pass->status.history, pod->type, pod->index, pass->arena);
    if (pod->exited)
        add_exit_event(pass, pod,
                       &(struct pod_end){.container = API_CONTAINER_NAME, .code = pod->exit_code});
    return true;
}

void observe_completions(struct pass *pass)
{
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        if (is_current(pass, child) &&
            !history_is_complete(&pass->status.history, child->type, child->index))
            is_done(pass, child->pod);
    }
}

/* The first look at a job that another operator began: what its pods went through before is not
 * counted. It may have been more than our limit is, and was answered already. */
static void begin_history(struct pass *pass)
{
    struct history *history = &pass->status.history;
    for (size_t i = 0; i < pass->view.pods.count && !history->known; i++) {
        struct replica_history replica = history_replica(history, pass->view.pods.items[i].pod);
        replica.counted = pass->view.pods.items[i].pod->restart_count;
        if (replica.counted)
            history_put(history, replica, pass->arena);
    }
    history->known = true;
}

/* Whether the pod goes though nothing in it has failed, so that its peers lose it. What has failed
 * is being deleted as well, by us. */
static bool leaves(const struct pass *pass, const struct child *child)
{
    const struct pod *pod = child->pod;
    const struct replica_history replica = history_replica(&pass->status.history, pod);
    bool gone = child->deleting || child->lost || pod->disrupted;
    bool failed = restart_failed(pod) || replica.counted > pod->restart_count;
    return gone && pod->phase != POD_PENDING && !pod->waited_in_vain && !failed &&
           !restart_succeeded(pod);
}

const char *observe_leaving(const struct pass *pass, enum replica_type type)
{
    const char *how = NULL;
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        if (child->type != type || !children_wanted(pass->job, child) || !child->pod ||
            (child->pod->phase != POD_FAILED && child->pod->phase != POD_RUNNING))
            continue;
        if (leaves(pass, child) && !how)
            how = child->deleting         ? "are being deleted"
                  : child->pod->disrupted ? "were ended by the system"
                                          : "are lost with their nodes";
        else if (child->pod->phase == POD_FAILED && !leaves(pass, child) &&
                 !child->pod->waited_in_vain)
            return NULL;
    }
    return how;
}

static void observe_leaving_pods(struct pass *pass)
{
    struct history *history = &pass->status.history;
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        struct replica_history replica = history_replica(history, child->pod);
        if (replica.left || !leaves(pass, child) || !is_current(pass, child) ||
            history_is_complete(history, child->type, child->index))
            continue;
        incident_leave(history, &replica, pass->world->now_ms);
        history_put(history, replica, pass->arena);
    }
}

/* Records what is new of a pod; returns whether it has failed. What a restart with policy Always
 * follows need not be a failure. */
static bool count_ends(struct pass *pass, const struct pod *pod, struct news *news)
{
    struct history *history = &pass->status.history;
    struct replica_history replica = history_replica(history, pod);
    int32_t fresh = restart_failures(pod) - replica.counted;
    if (fresh <= 0)
        return false;
    bool failed = restart_failed(pod) || !pod->end.container || pod->end.code != 0;
    replica.counted += fresh;
    if (failed &&
        incident_count(history, &replica, fresh, incident_lost_peer(pod), pass->world->now_ms) > 0)
        news->culprit = pod;
    history_put(history, replica, pass->arena);
    add_exit_event(pass, pod, &pod->end);
    if (failed && news->failures == 0)
        news->failed_type = pod->type;
    news->failures += failed ? fresh : 0;
    return failed;
}

static void observe_pod(struct pass *pass, const struct child *child, struct news *news)
{
    const struct pod *pod = child->pod;
    if (is_done(pass, pod) || pod->waited_in_vain)
        return;
    bool failed = count_ends(pass, pod, news);
    enum restart_policy policy = pass->job->replicas[pod->type].restart_policy;
    enum restart_verdict verdict = restart_judge(policy, pod);
    if (verdict == RESTART_FAILS_JOB && !news->fatal)
        news->fatal = pod;
    news->regroup |= failed || verdict == RESTART_REPLACE || child->deleting || child->lost;
}

/* What lost a peer comes after what it may have lost. */
struct news observe(struct pass *pass)
{
    struct news news = {0};
    struct history *history = &pass->status.history;
    bool group = pass->job->run_policy.restart_scope == SCOPE_JOB;
    begin_history(pass);
    int32_t before = history->failures;
    observe_leaving_pods(pass);
    for (int lost_peer = 0; lost_peer < 2; lost_peer++) {
        for (size_t i = 0; i < pass->view.pods.count; i++) {
            const struct child *child = &pass->view.pods.items[i];
            if (incident_lost_peer(child->pod) == lost_peer && is_current(pass, child) &&
                !history_is_complete(history, child->type, child->index))
                observe_pod(pass, child, &news);
        }
    }
    news.regroup = group && (has_vanished(pass) || news.regroup);
    if (group && history->failures > before)
        history->failures = before + 1;
    return news;
}
