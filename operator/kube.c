/* A request's life: FLYING in base/http; FAILED when a try has come to nothing and nobody has yet
 * said what time it is; RESTING until it is due again; WAITING for credentials, while their plugin
 * runs. Callbacks of http know no time, so what a
 * failure leads to is decided in kube_tick. */
#include "operator/kube.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "operator/kube_answer.h"
#include "operator/kubeconfig.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_STATUS_FORBIDDEN = 403, HTTP_STATUS_TOO_MANY = 429 };

enum request_state { REQUEST_FLYING, REQUEST_FAILED, REQUEST_RESTING, REQUEST_WAITING };

struct kube_request {
    struct kube *kube;
    struct kube_request *next, *previous;
    enum request_state state;
    struct http_request *flying;

    /* what was asked for; a stream has `line` */
    char *method, *path, *content_type, *body;
    bool once, exact, unguarded, is_stream;
    int64_t timeout_ms, idle_timeout_ms;
    void (*line)(void *context, const char *line, size_t bytes);
    void (*done)(void *context, const struct json_t *answer, const struct error *err);
    void (*ended)(void *context, const struct error *err);
    void *context;

    /* of its tries */
    int64_t since_ms; /* the first one */
    int64_t wait_ms;  /* FAILED: before the next try; negative: there is none */
    int64_t due_ms;   /* RESTING */
    unsigned tries, failures;
    bool was_refused;
    bool was_unsure; /* a try may have been carried out, though nobody said so */
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
    bool is_refused;             /* the credentials in use */
    uint64_t login;              /* counts credentials: a late 401 is about the ones before */
    uint64_t tls_version;
    int64_t last_ms;
    uint64_t sent, failed, forbidden;
};

/* ---- the list of requests ---- */

static void link_request(struct kube *kube, struct kube_request *request)
{
    request->next = kube->first;
    if (kube->first)
        kube->first->previous = request;
    kube->first = request;
}

static void free_request(struct kube_request *request)
{
    struct kube *kube = request->kube;
    if (kube->cursor == request)
        kube->cursor = request->next;
    if (request->next)
        request->next->previous = request->previous;
    if (request->previous)
        request->previous->next = request->next;
    else
        kube->first = request->next;
    free(request->method);
    free(request->path);
    free(request->content_type);
    free(request->body);
    free(request);
}

/* The request is gone before its owner hears of it, who may send, cancel, and forget it. */
static void finish(struct kube_request *request, const struct json_t *answer,
                   const struct error *err)
{
    struct kube_request last = *request;
    free_request(request);
    if (last.is_stream)
        last.ended(last.context, err);
    else
        last.done(last.context, answer, err);
}

/* ---- one try ---- */

static void fail(struct kube_request *request, int64_t wait_ms)
{
    request->state = REQUEST_FAILED;
    request->wait_ms = request->once || request->is_stream ? -1 : wait_ms;
}

/* 401: with newer credentials, once. */
static void refused(struct kube_request *request)
{
    struct kube *kube = request->kube;
    if (request->login == kube->login)
        kube->is_refused = true;
    fail(request, request->was_refused ? -1 : 0);
    request->was_refused = true;
}

/* A POST that finds its object there after a try whose answer was lost: it is very likely the one
 * that the lost try made. */
static bool was_made_before(const struct kube_request *request, const struct error *err)
{
    return err->code == ERR_EXISTS && request->was_unsure && !request->exact;
}

static void answered(struct kube_request *request, const struct json_t *object,
                     const struct error *err, long status)
{
    static const struct error none = {.code = ERR_NONE};
    request->kube->forbidden += status == HTTP_STATUS_FORBIDDEN;
    finish(request, object, was_made_before(request, err) ? &none : err);
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct kube_request *request = context;
    const struct kube_options *options = &request->kube->options;
    request->flying = NULL;
    json_t *object;
    struct error err;
    switch (kube_answer_read(answer, request->is_stream, request->method, request->path, &object,
                             &err)) {
    case KUBE_DONE:
        answered(request, object, &err, answer->status);
        json_decref(object);
        break;
    case KUBE_REFUSE:
        request->kube->failed++;
        request->err = err;
        refused(request);
        break;
    case KUBE_AGAIN:
        request->kube->failed++;
        request->was_unsure |= answer->status != HTTP_STATUS_TOO_MANY;
        request->err = err;
        fail(request,
             kube_answer_wait_ms(answer, options->backoff_first_ms, options->backoff_max_ms,
                                 ++request->failures, &request->kube->options.seed));
        break;
    }
}

static void on_line(void *context, const char *line, size_t bytes)
{
    struct kube_request *request = context;
    request->line(request->context, line, bytes);
}

static int refresh_login(struct kube *kube, int64_t now_ms, struct error *err)
{
    int result = kubeconfig_refresh(kube->config, kube->is_refused, now_ms, err);
    if (result)
        return result;
    if (kube->is_refused)
        kube->login++;
    kube->is_refused = false;
    if (kubeconfig_tls_version(kube->config) != kube->tls_version) {
        struct http_tls tls = kubeconfig_tls(kube->config);
        http_set_tls(kube->http, &tls);
        kube->tls_version = kubeconfig_tls_version(kube->config);
    }
    return 0;
}

static bool is_guarded_off(const struct kube_request *request)
{
    const struct kube *kube = request->kube;
    return kube->may_write && !request->unguarded && strcmp(request->method, "GET") != 0 &&
           !kube->may_write(kube->guard_context);
}

static void try_once(struct kube_request *request, int64_t now_ms)
{
    struct kube *kube = request->kube;
    if (is_guarded_off(request)) {
        error_set(&request->err, ERR_CANCELLED, "%s %.200s: not sent: we lead no longer",
                  request->method, request->path);
        fail(request, -1);
        return;
    }
    int login = refresh_login(kube, now_ms, &request->err);
    if (login == KUBECONFIG_PENDING) {
        request->state = REQUEST_WAITING;
        return;
    }
    if (login) {
        fail(request, backoff_ms(kube->options.backoff_first_ms, kube->options.backoff_max_ms,
                                 ++request->failures, &kube->options.seed));
        return;
    }
    auto_free char *url = xasprintf("%s%s", kubeconfig_server(kube->config), request->path);
    struct http_call call = {
        .method = request->method,
        .url = url,
        .body = request->body,
        .body_bytes = request->body ? strlen(request->body) : 0,
        .content_type = request->content_type,
        .bearer = kubeconfig_token(kube->config),
        .user_agent = kube->options.user_agent,
        .urgent = request->unguarded, /* a lease is not to run out behind a queue of pods */
        .timeout_ms = request->timeout_ms,
        .idle_timeout_ms = request->idle_timeout_ms,
        .line = request->is_stream ? on_line : NULL,
        .done = on_done,
        .context = request,
    };
    request->login = kube->login;
    request->tries++;
    request->state = REQUEST_FLYING;
    kube->sent++;
    request->flying = http_send(kube->http, &call);
}

/* ---- life cycle ---- */

struct kube *kube_open(struct http *http, struct kubeconfig *config,
                       const struct kube_options *options)
{
    assert(options->timeout_ms > 0 && options->backoff_first_ms > 0);
    struct kube *kube = xcalloc(1, sizeof *kube);
    *kube = (struct kube){.http = http, .config = config, .options = *options};
    struct http_tls tls = kubeconfig_tls(config);
    http_set_tls(http, &tls);
    kube->tls_version = kubeconfig_tls_version(config);
    return kube;
}

void kube_close(struct kube *kube)
{
    if (!kube)
        return;
    while (kube->first)
        kube_cancel(kube, kube->first);
    free(kube);
}

void kube_guard(struct kube *kube, bool (*may_write)(void *context), void *context)
{
    kube->may_write = may_write;
    kube->guard_context = context;
}

static struct kube_request *new_request(struct kube *kube, const char *method, const char *path,
                                        int64_t now_ms)
{
    assert(path[0] == '/');
    struct kube_request *request = xcalloc(1, sizeof *request);
    request->kube = kube;
    request->method = xstrdup(method);
    request->path = xstrdup(path);
    request->since_ms = now_ms;
    link_request(kube, request);
    return request;
}

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, int64_t now_ms)
{
    struct kube_request *request = new_request(kube, call->method, call->path, now_ms);
    if (call->body) {
        request->body = json_dumps(call->body, JSON_COMPACT);
        assert(request->body);
        request->content_type =
            xstrdup(call->content_type ? call->content_type : "application/json");
    }
    request->once = call->once;
    request->exact = call->exact;
    request->unguarded = call->unguarded;
    request->timeout_ms = call->timeout_ms ? call->timeout_ms : kube->options.timeout_ms;
    request->done = call->done;
    request->context = call->context;
    try_once(request, now_ms);
    return request;
}

struct kube_request *kube_watch(struct kube *kube, const struct kube_stream *stream, int64_t now_ms)
{
    struct kube_request *request = new_request(kube, "GET", stream->path, now_ms);
    request->is_stream = true;
    request->idle_timeout_ms = stream->idle_timeout_ms;
    request->line = stream->line;
    request->ended = stream->done;
    request->context = stream->context;
    try_once(request, now_ms);
    return request;
}

void kube_cancel(struct kube *kube, struct kube_request *request)
{
    if (!request)
        return;
    http_cancel(kube->http, request->flying);
    free_request(request);
}

/* ---- trying again ---- */

/* Decides on a failed request. Returns whether it has called back. */
static bool decide(struct kube_request *request, int64_t now_ms)
{
    int64_t give_up_ms = request->kube->options.give_up_ms;
    struct error err = request->err;
    if (request->wait_ms >= 0) {
        request->due_ms = now_ms + request->wait_ms;
        request->state = REQUEST_RESTING;
        if (!give_up_ms || request->due_ms < request->since_ms + give_up_ms)
            return false;
        error_set(&err, request->err.code, "%.460s; gave up after %u tries", request->err.msg,
                  request->tries);
    }
    finish(request, NULL, &err);
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
    kubeconfig_follow(kube->config, now_ms);
    for (struct kube_request *r = kube->first; r; r = kube->cursor) {
        kube->cursor = r->next;
        if (r->state == REQUEST_FAILED && decide(r, now_ms))
            has_called_back = true;
        else if (r->state == REQUEST_WAITING ||
                 (r->state == REQUEST_RESTING && r->due_ms <= now_ms))
            try_once(r, now_ms);
    }
    kube->cursor = NULL;
    *ret_due_ms = has_called_back ? now_ms : INT64_MAX;
    for (struct kube_request *r = kube->first; r; r = r->next) {
        int64_t due_ms = r->state == REQUEST_RESTING  ? r->due_ms
                         : r->state == REQUEST_FAILED ? now_ms
                                                      : INT64_MAX;
        if (due_ms < *ret_due_ms)
            *ret_due_ms = due_ms;
    }
    if (kube_fds(kube, fds, &left_ms) && now_ms + left_ms < *ret_due_ms)
        *ret_due_ms = now_ms + left_ms;
}

size_t kube_fds(const struct kube *kube, struct pollfd *fds, int64_t *ret_left_ms)
{
    return kubeconfig_fds(kube->config, fds, ret_left_ms);
}

bool kube_is_refusal(enum error_code code)
{
    return code == ERR_EXISTS || code == ERR_FORBIDDEN || code == ERR_INPUT ||
           code == ERR_NOT_FOUND || code == ERR_CONFLICT;
}

uint64_t kube_requests_sent(const struct kube *kube)
{
    return kube->sent;
}

uint64_t kube_requests_failed(const struct kube *kube)
{
    return kube->failed;
}

uint64_t kube_requests_forbidden(const struct kube *kube)
{
    return kube->forbidden;
}
