/* What failed and what waits: decided by the clock. */
#include "operator/kube/kube_internal.h"
#include "operator/kube/kubeconfig.h"

/* Decides on a failed request. Returns whether it has called back. */
static bool decide(struct kube_request *request, int64_t now_ms)
{
    struct kube *kube = request->kube;
    int64_t give_up_ms = kube->options.give_up_ms;
    struct error err = request->err;
    if (request->wait_ms >= 0) {
        request->due_ms = now_ms + request->wait_ms;
        request->state = REQUEST_BACKOFF;
        if (!give_up_ms || request->due_ms < request->since_ms + give_up_ms)
            return false;
        error_set(&err, request->err.code, "%.460s; gave up after %u tries", request->err.msg,
                  request->tries);
    }
    kube->asked_ms = request->asked_ms;
    kube_request_finish(request, NULL, &err);
    kube->asked_ms = 0;
    return true;
}

/* The wall clock was set back: what waits, waits no longer for that. */
static void follow_clock(struct kube *kube, int64_t now_ms)
{
    int64_t back_ms = kube->last_ms - now_ms;
    kube->last_ms = now_ms;
    if (back_ms <= 0)
        return;
    for (struct kube_request *r = kube->first; r; r = r->next) {
        r->since_ms -= back_ms;
        r->due_ms -= back_ms;
    }
}

void kube_tick(struct kube *kube, int64_t now_ms, int64_t *ret_due_ms)
{
    bool has_called_back = false;
    struct pollfd fds[COMMAND_FDS_MAX];
    int64_t left_ms;
    follow_clock(kube, now_ms);
    /* First the credentials: requests that wait for the plugin's answer go out in this very
     * tick. */
    kubeconfig_follow(kube->config, now_ms);
    for (struct kube_request *r = kube->first; r; r = kube->cursor) {
        kube->cursor = r->next;
        if (r->state == REQUEST_FAILED && decide(r, now_ms))
            has_called_back = true;
        else if (r->state == REQUEST_NO_CREDENTIALS ||
                 (r->state == REQUEST_BACKOFF && r->due_ms <= now_ms))
            kube_request_try(r, now_ms);
    }
    kube->cursor = NULL;
    /* A callback may have sent requests that the walk has passed already. */
    *ret_due_ms = has_called_back ? now_ms : INT64_MAX;
    for (struct kube_request *r = kube->first; r; r = r->next) {
        int64_t due_ms = r->state == REQUEST_BACKOFF  ? r->due_ms
                         : r->state == REQUEST_FAILED ? now_ms
                                                      : INT64_MAX;
        if (due_ms < *ret_due_ms)
            *ret_due_ms = due_ms;
    }
    if (kube_fds(kube, fds, &left_ms) && now_ms + left_ms < *ret_due_ms)
        *ret_due_ms = now_ms + left_ms;
}
