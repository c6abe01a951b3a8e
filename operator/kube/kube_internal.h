/* Private to the client: kube.c sends requests and reads answers, kube_retry.c decides about failed
 * tries.
 *
 * States of a request: IN_FLIGHT in base/http; FAILED until kube_tick, as the callbacks of http do
 * not know the time; BACKOFF until its retry is due; NO_CREDENTIALS while the credential plugin
 * runs. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_INTERNAL_H
#define SHOAL_OPERATOR_KUBE_KUBE_INTERNAL_H

#include "operator/kube/kube.h"

enum request_state { REQUEST_IN_FLIGHT, REQUEST_FAILED, REQUEST_BACKOFF, REQUEST_NO_CREDENTIALS };

struct kube_request {
    struct kube *kube;
    struct kube_request *next, *previous;
    enum request_state state;
    struct http_request *in_flight;

    /* the request; a stream has `line` */
    char *method, *path, *content_type, *body;
    size_t body_bytes;
    bool once, exact, unguarded, is_stream;
    int64_t timeout_ms, idle_timeout_ms;
    void (*line)(void *context, const char *line, size_t bytes);
    void (*item)(void *context, const struct json *item); /* NULL: the answer has them */
    void (*head)(void *context, const struct json *head);
    const char *const *left_out;
    void (*done)(void *context, const struct json *answer, const struct error *err);
    void (*ended)(void *context, const struct error *err);
    void *context;

    /* its tries */
    int64_t since_ms; /* of the first try */
    int64_t wait_ms;  /* FAILED: backoff before the next try; negative: no retry */
    int64_t asked_ms; /* FAILED: the server's Retry-After; 0: none */
    int64_t due_ms;   /* BACKOFF: of the next try */
    unsigned tries, failures;
    bool was_unauthorized;
    bool maybe_done; /* the server may have carried out a try whose answer was lost */
    uint64_t login;  /* kube->login at the last try */
    struct error err;
};

struct kube {
    struct http *http;
    struct kubeconfig *config;
    struct kube_options options;
    bool (*may_write)(void *context); /* NULL: always */
    void *guard_context;
    struct kube_request *first;
    struct kube_request
        *cursor;       /* the request that kube_tick visits next: a callback may cancel it */
    bool unauthorized; /* the server refused the current credentials */
    uint64_t login;    /* number of the credentials: a late 401 is about earlier ones */
    uint64_t tls_version;
    int64_t last_ms;
    int64_t asked_ms; /* of the failure that is being told */
    uint64_t sent, failed, forbidden;
    size_t body_bytes; /* of all requests */
};

/* Sends the request, or sets the state that says why not. */
void kube_request_try(struct kube_request *request, int64_t now_ms);
/* Frees the request, then calls back: the callback may send, cancel and forget. */
void kube_request_finish(struct kube_request *request, const struct json *answer,
                         const struct error *err);
#endif
