#include "operator/apply.h"

#include "base/mem.h"

/* What is said of a deed's outcome, in the words that tools know from the peer operator. */
struct deed {
    const char *done_reason, *failed_reason;
    const char *done, *failed;  /* messages; the object's name or the error follows */
    enum error_code as_good_as; /* a failure that means it is so already */
};

static const struct deed deeds[] = {
    [ACTION_CREATE_POD] = {"SuccessfulCreatePod", "FailedCreatePod", "Created pod",
                           "Error creating", ERR_EXISTS},
    [ACTION_CREATE_SERVICE] = {"SuccessfulCreateService", "FailedCreateService", "Created service",
                               "Error creating", ERR_EXISTS},
    [ACTION_DELETE_POD] = {"SuccessfulDeletePod", "FailedDeletePod", "Deleted pod",
                           "Error deleting", ERR_NOT_FOUND},
    [ACTION_DELETE_SERVICE] = {"SuccessfulDeleteService", "FailedDeleteService", "Deleted service",
                               "Error deleting", ERR_NOT_FOUND},
    [ACTION_DELETE_JOB] = {"SuccessfulDeletePod", "FailedDeletePod", "Deleted job",
                           "Error deleting", ERR_NOT_FOUND},
};

static int report(const struct deed *deed, const char *name, int result, const struct job *job,
                  const struct backend *backend, struct error *err)
{
    if (result < 0 && err->code == deed->as_good_as)
        return 0;
    auto_free char *message =
        xasprintf("%s: %s", result < 0 ? deed->failed : deed->done, result < 0 ? err->msg : name);
    if (result < 0)
        backend->event(backend->context, job, EVENT_WARNING, deed->failed_reason, message);
    else
        backend->event(backend->context, job, EVENT_NORMAL, deed->done_reason, message);
    return result;
}

/* Creates and deletes. */
static int carry_out(const struct action *action, const struct job *job,
                     const struct history *history, const struct backend *backend,
                     struct arena *arena, struct error *err)
{
    void *context = backend->context;
    switch (action->kind) {
    case ACTION_CREATE_POD:
        return backend->create_pod(
            context,
            pod_build(job, history, action->type, action->index, &backend->pod_options, arena),
            err);
    case ACTION_CREATE_SERVICE:
        return backend->create_service(
            context, pod_build_service(job, action->type, action->index, arena), err);
    case ACTION_DELETE_POD:
        return backend->delete_pod(context, job, action->name, action->uid, err);
    case ACTION_DELETE_SERVICE:
        return backend->delete_service(context, job, action->name, action->uid, err);
    default:
        return backend->delete_job(context, job, err);
    }
}

int apply(const struct plan *plan, const struct job *job, const struct job_status *status,
          const struct backend *backend, int64_t *ret_requeue_ms, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    *ret_requeue_ms = 0;
    int result = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct action *action = &plan->actions[i];
        if (action->kind == ACTION_REQUEUE) {
            *ret_requeue_ms = action->at_ms;
        } else if (result < 0) {
            continue; /* only the next pass is still of interest */
        } else if (action->kind == ACTION_SET_STATUS) {
            result = backend->set_status(backend->context, job, action->status, err);
            status = action->status;
        } else if (action->kind == ACTION_EVENT) {
            backend->event(backend->context, job, action->event_type, action->reason,
                           action->message);
        } else {
            result = carry_out(action, job, &status->history, backend, arena, err);
            result = report(&deeds[action->kind], action->name, result, job, backend, err);
        }
    }
    return result;
}
