/* The Kubernetes API as a client sees it: who we are (credentials), which paths, what status codes
 * mean, and trying again. On base/http; knows no jobs and no plans. Retries here are those that any
 * caller wants: connection trouble, 429 and 5xx with Retry-After or jittered backoff, 401 once
 * after reading the token again. 404, 409, 410, 403, 422 are answers, told by error codes.
 *
 * now_ms is the wall clock everywhere (credentials expire by it); what waits survives its jumps.
 * `done` and `line` are called from http_poll and kube_tick only, and may send and cancel. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_H
#define SHOAL_OPERATOR_KUBE_KUBE_H

#include "base/http.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;
struct kubeconfig;
struct kube;
struct kube_request;

struct kube_options {
    int64_t timeout_ms;                       /* of one try */
    int64_t give_up_ms;                       /* of all tries of a request together; 0: never */
    int64_t backoff_first_ms, backoff_max_ms; /* doubled, with full jitter */
    uint64_t seed;                            /* of the jitter */
    const char *user_agent;                   /* lives as long as this client */
};

/* An object path is built by kube_path. Bodies are JSON. */
struct kube_call {
    const char *method;
    const char *path;          /* from "/" on, with its query; copied */
    const struct json_t *body; /* NULL: none; printed at once */
    const char *content_type;  /* NULL: application/json */
    bool once;                 /* no tries again: for leases, whose holder decides in time */
    bool exact;                /* a POST: whose object this is matters; see done */
    bool unguarded;            /* the leader's own lease: sent at once, even if the guard says no */
    int64_t timeout_ms;        /* of one try; 0: that of the options */
    /* The answer's object: NULL with err set if there is none. err->code: ERR_NOT_FOUND 404,
     * ERR_EXISTS 409 AlreadyExists, ERR_CONFLICT 409 else, ERR_GONE 410, ERR_FORBIDDEN 403,
     * ERR_INPUT 400 and 422, ERR_TIMEOUT, ERR_IO ...; its text is the server's Status.message with
     * verb and path. ERR_NONE for an answer that is no error; there is none with it (NULL) if a
     * try was refused with AlreadyExists after an earlier one of the same POST whose answer was
     * lost: that one made it, or so it seems. With `exact` that is ERR_IO: look, and ask again.
     * Borrowed until it returns. */
    void (*done)(void *context, const struct json_t *answer, const struct error *err);
    void *context;
};

/* A stream of watch events; no retries here (watch.h decides). */
struct kube_stream {
    const char *path;
    int64_t idle_timeout_ms;
    void (*line)(void *context, const char *line, size_t bytes); /* as in http_call */
    /* The end: err->code ERR_NONE if the server ended it in good order. */
    void (*done)(void *context, const struct error *err);
    void *context;
};

/* http and config are borrowed and must outlive it. */
struct kube *kube_open(struct http *http, struct kubeconfig *config,
                       const struct kube_options *options);
void kube_close(struct kube *kube); /* cancels all; NULL-safe */

/* may_write is asked right before each try of all that is no GET; if it says no, the request ends
 * with ERR_CANCELLED. For leaders: a process that was stopped for a while must not go on with what
 * it had begun, before it has even looked at its lease. */
void kube_guard(struct kube *kube, bool (*may_write)(void *context), void *context);

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, int64_t now_ms);
struct kube_request *kube_watch(struct kube *kube, const struct kube_stream *stream,
                                int64_t now_ms);
/* Of err->code: an answer, as opposed to none; trying again gets the same until something is
 * changed. */
bool kube_is_refusal(enum error_code code);
void kube_cancel(struct kube *kube, struct kube_request *request); /* no `done`; NULL-safe */

/* To be called before each http_poll: decides on what has failed since the last time, and sends
 * what is due to be tried again. *ret_due_ms: when it is to be called again at the latest
 * (INT64_MAX: after the next answer; now_ms: it has called back, so there may be
 * something to do). */
void kube_tick(struct kube *kube, int64_t now_ms, int64_t *ret_due_ms);

/* What http_poll is to wait for beside the connections: a credential plugin that runs, for
 * *ret_left_ms at most (INT64_MAX: none does). COMMAND_FDS_MAX at most; returns how many. */
size_t kube_fds(const struct kube *kube, struct pollfd *fds, int64_t *ret_left_ms);

/* What the bodies of all requests take that are not over. */
size_t kube_body_bytes(const struct kube *kube);

/* Requests sent since the start, tries included: for metrics and tests. */
uint64_t kube_requests_sent(const struct kube *kube);
/* Of them, those without an answer to work with: connection trouble, 401, 408, 429, 5xx. */
uint64_t kube_requests_failed(const struct kube *kube);
/* Of those sent, those that were answered with 403: a right is missing, or a quota is used up. */
uint64_t kube_requests_forbidden(const struct kube *kube);

/* "/api/v1/namespaces/NS/pods/NAME" and its like. group "" is the core; namespace_ and name may be
 * NULL (all namespaces; the collection); subresource NULL or "status", "scale". Unusual characters
 * are escaped. Written to `out` of `size` bytes; false if it does not fit. */
bool kube_path(char *out, size_t size, const char *group, const char *version, const char *plural,
               const char *namespace_, const char *name, const char *subresource);

#ifdef __cplusplus
}
#endif
#endif
