#include "operator/kube/kube.h"

#include "base/backoff.h"
#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "operator/kube/kube_answer.h"
#include "operator/kube/kube_internal.h"
#include "operator/kube/kubeconfig.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_STATUS_FORBIDDEN = 403, HTTP_STATUS_TOO_MANY = 429 };

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
    /* kube_tick walks the list and calls back, and a callback may cancel any request: also the one
     * that is next. */
    if (kube->cursor == request)
        kube->cursor = request->next;
    if (request->next)
        request->next->previous = request->previous;
    if (request->previous)
        request->previous->next = request->next;
    else
        kube->first = request->next;
    kube->body_bytes -= request->body_bytes;
    free(request->method);
    free(request->path);
    free(request->content_type);
    free(request->body);
    free(request);
}

void kube_request_finish(struct kube_request *request, const struct json *answer,
                         const struct error *err)
{
    /* Freed before the callback, which may send the next request or close what the request belongs
     * to. */
    struct kube_request last = *request;
    free_request(request);
    if (last.is_stream)
        last.ended(last.context, err);
    else
        last.done(last.context, answer, err);
}

/* ---- one try ---- */

/* Only marks the request. kube_tick calls back, so that nobody hears of a request before kube_send
 * has returned it. */
static void fail(struct kube_request *request, int64_t wait_ms)
{
    request->state = REQUEST_FAILED;
    request->wait_ms = request->once || request->is_stream ? -1 : wait_ms;
}

/* 401: with newer credentials, once. */
static void on_unauthorized(struct kube_request *request)
{
    struct kube *kube = request->kube;
    /* Many requests may fail with the same old login. The first one asks for another, and the rest
     * are only sent again with it. */
    if (request->login == kube->login)
        kube->unauthorized = true;
    fail(request, request->was_unauthorized ? -1 : 0);
    request->was_unauthorized = true;
}

/* A POST that finds its object there after a try whose answer was lost: it is very likely the one
 * that the lost try made, which is good enough unless it has to be exactly that. */
static void exists_after_lost_answer(struct kube_request *request, struct error *err)
{
    if (request->exact)
        error_set(err, ERR_IO,
                  "%s %.200s: it exists already: an earlier try whose answer was "
                  "lost created it, or somebody else did",
                  request->method, request->path);
    else
        err->code = ERR_NONE;
}

static void answered(struct kube_request *request, const struct json *object, struct error *err,
                     long status)
{
    request->kube->forbidden += status == HTTP_STATUS_FORBIDDEN;
    if (err->code == ERR_EXISTS && request->maybe_done)
        exists_after_lost_answer(request, err);
    kube_request_finish(request, object, err);
}

static void on_head(void *context, const struct json *head)
{
    const struct kube_request *request = context;
    request->head(request->context, head);
    http_push(request->kube->http);
}

static void on_item(void *context, const struct json *item)
{
    const struct kube_request *request = context;
    request->item(request->context, item);
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct kube_request *request = context;
    const struct kube_options *options = &request->kube->options;
    request->in_flight = NULL;
    const struct json_items items = {.left_out = request->left_out,
                                     .head = request->head ? on_head : NULL,
                                     .item = on_item,
                                     .context = request};
    struct json *object;
    struct error err;
    switch (kube_answer_read(answer, request->is_stream, request->method, request->path,
                             request->item ? &items : NULL, &object, &err)) {
    case KUBE_DONE:
        answered(request, object, &err, answer->status);
        json_free(object);
        break;
    case KUBE_REFUSE:
        request->kube->failed++;
        request->err = err;
        on_unauthorized(request);
        break;
    case KUBE_RETRY:
        request->kube->failed++;
        /* 429 comes from the server's admission (API Priority and Fairness) before it executes
         * anything. After any other failure the write may have been done. */
        request->maybe_done |= answer->status != HTTP_STATUS_TOO_MANY;
        request->err = err;
        request->asked_ms = kube_answer_asked_ms(answer);
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
    int result = kubeconfig_refresh(kube->config, kube->unauthorized, now_ms, err);
    if (result)
        return result;
    if (kube->unauthorized)
        kube->login++;
    kube->unauthorized = false;
    if (kubeconfig_tls_version(kube->config) != kube->tls_version) {
        struct http_tls tls = kubeconfig_tls(kube->config);
        http_set_tls(kube->http, &tls);
        kube->tls_version = kubeconfig_tls_version(kube->config);
    }
    return 0;
}

/* Reads harm nobody. Unguarded are the writes of the Lease itself, which decide who leads. */
static bool is_forbidden_by_guard(const struct kube_request *request)
{
    const struct kube *kube = request->kube;
    return kube->may_write && !request->unguarded && strcmp(request->method, "GET") != 0 &&
           !kube->may_write(kube->guard_context);
}

void kube_request_try(struct kube_request *request, int64_t now_ms)
{
    struct kube *kube = request->kube;
    request->asked_ms = 0;
    /* Asked before each try and not once: another operator may have begun to lead while the request
     * waited for its next try. */
    if (is_forbidden_by_guard(request)) {
        error_set(&request->err, ERR_CANCELLED,
                  "%s %.200s: not sent: this operator does not lead any more", request->method,
                  request->path);
        fail(request, -1);
        return;
    }
    int login = refresh_login(kube, now_ms, &request->err);
    if (login == KUBECONFIG_PENDING) {
        request->state = REQUEST_NO_CREDENTIALS;
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
        .body_bytes = request->body_bytes,
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
    request->state = REQUEST_IN_FLIGHT;
    kube->sent++;
    request->in_flight = http_send(kube->http, &call);
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
        request->body = json_print(call->body, JSON_COMPACT);
        assert(request->body);
        request->body_bytes = strlen(request->body);
        kube->body_bytes += request->body_bytes;
        request->content_type =
            xstrdup(call->content_type ? call->content_type : "application/json");
    }
    request->once = call->once;
    request->exact = call->exact;
    request->unguarded = call->unguarded;
    request->timeout_ms = call->timeout_ms ? call->timeout_ms : kube->options.timeout_ms;
    request->item = call->item;
    request->head = call->head;
    request->left_out = call->left_out;
    request->done = call->done;
    request->context = call->context;
    kube_request_try(request, now_ms);
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
    kube_request_try(request, now_ms);
    return request;
}

void kube_cancel(struct kube *kube, struct kube_request *request)
{
    if (!request)
        return;
    http_cancel(kube->http, request->in_flight);
    free_request(request);
}

size_t kube_fds(const struct kube *kube, struct pollfd *fds, int64_t *ret_left_ms)
{
    return kubeconfig_fds(kube->config, fds, ret_left_ms);
}

/* ---- what became of them ---- */

bool kube_is_refusal(enum error_code code)
{
    return code == ERR_EXISTS || code == ERR_FORBIDDEN || code == ERR_INPUT ||
           code == ERR_NOT_FOUND || code == ERR_CONFLICT;
}

int64_t kube_asked_ms(const struct kube *kube)
{
    return kube->asked_ms;
}

size_t kube_body_bytes(const struct kube *kube)
{
    return kube->body_bytes;
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
