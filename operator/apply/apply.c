#include "operator/apply/apply.h"

#include "base/mem.h"
#include "operator/apply/steps.h"

static int carry_out(const struct action *action, const struct job *job,
                     const struct history *history, const struct backend *backend,
                     struct arena *arena, struct error *err)
{
    void *context = backend->context;
    switch (action->kind) {
    case ACTION_SET_STATUS:
        return backend->set_status(context, job, action->status, err);
    case ACTION_CREATE_POD:
        return backend->create_pod(
            context,
            pod_build(job, history, action->type, action->index, &backend->pod_options, arena),
            err);
    case ACTION_CREATE_SERVICE:
        return backend->create_service(
            context, pod_build_service(job, action->type, action->index, arena), err);
    case ACTION_DELETE_POD:
    case ACTION_FORCE_DELETE_POD:
        return backend->delete_pod(context, job, action->name, action->uid, err);
    case ACTION_DELETE_SERVICE:
        return backend->delete_service(context, job, action->name, action->uid, err);
    case ACTION_DELETE_JOB:
        return backend->delete_job(context, job, err);
    default:
        return error_set(err, ERR_UNSUPPORTED, "%s: a kind of object that only a cluster has",
                         action->name);
    }
}

int apply(const struct plan *plan, const struct job *job, const struct job_status *status,
          const struct backend *backend, int64_t *ret_requeue_ms, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct steps *steps = steps_open(plan, status, 1);
    const struct action *action;
    while ((action = steps_next(steps))) {
        if (action->kind == ACTION_EVENT) {
            backend->event(backend->context, job, action->event_type, action->reason,
                           action->message);
            continue;
        }
        struct error outcome = {.code = ERR_NONE};
        if (carry_out(action, job, steps_history(steps), backend, arena, &outcome) == 0)
            outcome.code = ERR_NONE;
        steps_done(steps, action, &outcome);
    }
    const struct error *failure = steps_failure(steps);
    if (failure)
        *err = *failure;
    int result = failure ? -1 : 0;
    *ret_requeue_ms = steps_requeue_ms(steps);
    steps_close(steps);
    return result;
}
