/* Inside the client: for kube.c, which sends and hears, and kube_retry.c, which decides what
 * becomes of a try that failed.
 *
 * A request's life: IN_FLIGHT in base/http; FAILED when a try has come to nothing and nobody has
 * yet said what time it is; BACKOFF until it is due again; NO_CREDENTIALS, while their plugin runs.
 * Callbacks of http know no time, so what a failure leads to is decided in kube_tick. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_PARTS_H
#define SHOAL_OPERATOR_KUBE_KUBE_PARTS_H

#include "operator/kube/kube.h"

#ifdef __cplusplus
extern "C" {
#endif

enum request_state { REQUEST_IN_FLIGHT, REQUEST_FAILED, REQUEST_BACKOFF, REQUEST_NO_CREDENTIALS };

struct kube_request {
    struct kube *kube;
    struct kube_request *next, *previous;
    enum request_state state;
    struct http_request *in_flight;

    /* what was asked for; a stream has `line` */
    char *method, *path, *content_type, *body;
    size_t body_bytes;
    bool once, exact, unguarded, is_stream;
    int64_t timeout_ms, idle_timeout_ms;
    void (*line)(void *context, const char *line, size_t bytes);
    void (*done)(void *context, const struct json_t *answer, const struct error *err);
    void (*ended)(void *context, const struct error *err);
    void *context;

    /* of its tries */
    int64_t since_ms; /* the first one */
    int64_t wait_ms;  /* FAILED: before the next try; negative: there is none */
    int64_t due_ms;   /* BACKOFF */
    unsigned tries, failures;
    bool was_unauthorized;
    bool maybe_done; /* a try may have been carried out, though nobody said so */
    uint64_t login;  /* of the last try: kube->login then */
    struct error err;
};

struct kube {
    struct http *http;
    struct kubeconfig *config;
    struct kube_options options;
    bool (*may_write)(void *context); /* NULL: always */
    void *guard_context;
    struct kube_request *first;
    struct kube_request *cursor; /* the next that kube_tick looks at: callbacks may cancel it */
    bool unauthorized;           /* the credentials in use */
    uint64_t login;              /* counts credentials: a late 401 is about the ones before */
    uint64_t tls_version;
    int64_t last_ms;
    uint64_t sent, failed, forbidden;
    size_t body_bytes; /* of all requests */
};

/* Sends it, or says why not in its state. */
void kube_request_try(struct kube_request *request, int64_t now_ms);
/* Frees it and calls back: it is gone before its owner hears of it, who may send, cancel, and
 * forget it. */
void kube_request_finish(struct kube_request *request, const struct json_t *answer,
                         const struct error *err);

#ifdef __cplusplus
}
#endif
#endif
