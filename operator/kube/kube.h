/* A client of the Kubernetes API on base/http: credentials, paths, status codes, retries. Knows no
 * jobs and no plans. It retries what any caller would: connection errors, 429 and 5xx with
 * Retry-After or a backoff with jitter, and 401 once, with new credentials. It returns 403, 404,
 * 409, 410 and 422 as error codes.
 *
 * now_ms is the wall clock everywhere, as credentials expire by it; the client survives its jumps.
 * `done` and `line` are called from http_poll and kube_tick only, and may send and
 * cancel requests. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_H
#define SHOAL_OPERATOR_KUBE_KUBE_H

#include "base/http.h"

struct json;
struct kubeconfig;
struct kube;
struct kube_request;

struct kube_options {
    int64_t timeout_ms;                       /* of one try */
    int64_t give_up_ms;                       /* of all tries of a request together; 0: no limit */
    int64_t backoff_first_ms, backoff_max_ms; /* doubled, with full jitter */
    uint64_t seed;                            /* of the jitter */
    const char *user_agent;                   /* must outlive the client */
};

/* kube_path makes the path of an object. Bodies are JSON. */
struct kube_call {
    const char *method;
    const char *path;         /* with its query; copied */
    const struct json *body;  /* NULL: none; serialized at once */
    const char *content_type; /* NULL: application/json */
    bool once;                /* no retries: the caller decides when to ask again */
    bool exact; /* a POST whose caller must know whether it created the object; see done */
    /* the leader's own lease: sent before all others and without asking the guard */
    bool unguarded;
    int64_t timeout_ms; /* of one try; 0: kube_options.timeout_ms */
    /* Of a list: its items, one by one before `done`, whose answer then has none. Some may come of
     * an answer that fails. `item` is borrowed, and the request must not be cancelled meanwhile.
     * NULL: the answer has them. */
    void (*item)(void *context, const struct json *item);
    /* Of a list with `item`: what stands before its items, before they are read. What is sent from
     * here leaves before they are. NULL: nobody wants it. `head` is borrowed. */
    void (*head)(void *context, const struct json *head);
    const char *const *left_out; /* of the items, as in json_lenient.h; static */
    /* The answer's object, or NULL with *err: ERR_NOT_FOUND 404, ERR_EXISTS 409 AlreadyExists,
     * ERR_CONFLICT any other 409, ERR_GONE 410, ERR_FORBIDDEN 403, ERR_INPUT 400 and 422,
     * ERR_TIMEOUT, ERR_IO ... Its text is the server's Status.message with verb and path. On
     * success err->code is ERR_NONE. `answer` may then be NULL: a try of a POST got AlreadyExists
     * after the answer to an earlier try was lost. The earlier one has most likely created the
     * object. With `exact` that is ERR_IO instead: the caller must read the object. `answer` is
     * borrowed for the call. */
    void (*done)(void *context, const struct json *answer, const struct error *err);
    void *context;
};

/* A stream of watch events. The client does not retry it; watch.h decides. */
struct kube_stream {
    const char *path;
    int64_t idle_timeout_ms;
    void (*line)(void *context, const char *line, size_t bytes); /* as in http_call */
    /* The stream ended; err->code ERR_NONE: the server closed it regularly. */
    void (*done)(void *context, const struct error *err);
    void *context;
};

/* http and config are borrowed and must outlive it. */
struct kube *kube_open(struct http *http, struct kubeconfig *config,
                       const struct kube_options *options);
void kube_close(struct kube *kube); /* cancels all requests; NULL-safe */

/* The client calls may_write right before each try of a request other than GET. If it returns
 * false, the request ends with ERR_CANCELLED. Fencing for leaders: a process that was suspended for
 * a while must not send the writes it had begun before it has looked at its lease. */
void kube_guard(struct kube *kube, bool (*may_write)(void *context), void *context);

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, int64_t now_ms);
struct kube_request *kube_watch(struct kube *kube, const struct kube_stream *stream,
                                int64_t now_ms);
/* Whether the error is an answer of the API server, which a retry would get again until something
 * changes. */
bool kube_is_refusal(enum error_code code);
/* From within `done`, of the failure it is told: for how long the server wants not to be asked for
 * the same again (Retry-After), a minute at most; 0: it names no time. */
int64_t kube_asked_ms(const struct kube *kube);
void kube_cancel(struct kube *kube,
                 struct kube_request *request); /* does not call `done`; NULL-safe */

/* Call it before each http_poll. It decides about the requests that have failed since the last call
 * and sends the retries that are due. *ret_due_ms: when to call it again at the latest (INT64_MAX:
 * after the next answer; now_ms: a callback ran, so the caller may have something to do). */
void kube_tick(struct kube *kube, int64_t now_ms, int64_t *ret_due_ms);

/* What http_poll must poll beside its connections: a running credential plugin, for *ret_left_ms at
 * most (INT64_MAX: none runs). Returns the number of fds, COMMAND_FDS_MAX at most. */
size_t kube_fds(const struct kube *kube, struct pollfd *fds, int64_t *ret_left_ms);

/* Memory of the bodies of all requests that are not over. */
size_t kube_body_bytes(const struct kube *kube);

/* Requests sent since the start, retries included. */
uint64_t kube_requests_sent(const struct kube *kube);
/* Those without a usable answer: connection errors, 401, 408, 429, 5xx. */
uint64_t kube_requests_failed(const struct kube *kube);
/* Those that were answered with 403: a permission is missing, or a quota is exceeded. */
uint64_t kube_requests_forbidden(const struct kube *kube);

/* Writes a path such as "/api/v1/namespaces/NS/pods/NAME". group "" is the core group. namespace_
 * NULL: all namespaces; name NULL: the collection; subresource: NULL, "status" or "scale".
 * Percent-encodes other characters. Returns false if the path does not fit into `size` bytes. */
bool kube_path(char *out, size_t size, const char *group, const char *version, const char *plural,
               const char *namespace_, const char *name, const char *subresource);
#endif
