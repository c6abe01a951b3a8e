#include "operator/observe.h"

#include "operator/children.h"
#include "operator/condition.h"
#include "operator/history.h"
#include "operator/restart.h"

#include <inttypes.h>

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

/* Of a pod that was restarted in place the end before that. */
static void tell_exit(struct pass *pass, const struct pod *pod)
{
    if (pod->exited || pod->restarted)
        pass_event(pass, EVENT_NORMAL, "ExitedWithCode",
                   pass_text(pass, "Pod: %s.%s exited with code %" PRId32, pass->job->namespace_,
                             pod->name, pod->exited ? pod->exit_code : pod->before_code));
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
    tell_exit(pass, pod);
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

struct news observe(struct pass *pass)
{
    struct news news = {0};
    struct history *history = &pass->status.history;
    for (size_t i = 0; i < pass->view.pods.count; i++) {
        const struct child *child = &pass->view.pods.items[i];
        const struct pod *pod = child->pod;
        if (!is_current(pass, child) || history_is_complete(history, pod->type, pod->index))
            continue;
        if (is_done(pass, pod) || pod->waited_in_vain)
            continue;
        int32_t fresh = history_record(history, pod, restart_failures(pod), pass->arena);
        if (fresh > 0)
            tell_exit(pass, pod);
        if (fresh > 0 && news.failures == 0)
            news.failed_type = pod->type;
        news.failures += fresh;
        enum restart_policy policy = pass->job->replicas[pod->type].restart_policy;
        enum restart_verdict verdict = restart_judge(policy, pod);
        if (verdict == RESTART_FAILS_JOB && !news.fatal)
            news.fatal = pod;
        news.regroup |= fresh > 0 || verdict == RESTART_REPLACE || child->deleting || child->lost;
    }
    bool group = pass->job->run_policy.restart_scope == SCOPE_JOB;
    news.regroup = group && (has_vanished(pass) || news.regroup);
    history->failures += group && news.failures > 1 ? 1 : news.failures;
    return news;
}
