#include "base/http.h"

#include "base/clock.h"
#include "base/http_request.h"
#include "base/mem.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

struct http {
    struct http_options options;
    CURLM *multi;
    CURLSH *streams;     /* the connections of streamed answers; all others are multi's */
    struct http_tls tls; /* own copies */
    /* All requests in order of http_send. One that is dropped is freed by sweep, so that callbacks
     * may cancel any of them while the list is walked. */
    struct http_request *first, **end;
    size_t running; /* those with an easy handle in multi */
    size_t alive;   /* those that are not dropped */
    bool calling_back;
    bool pushed; /* since the last http_poll, which has to look at what came meanwhile */
};

/* ---- opening and closing ---- */

/* Streamed answers and requests never meet on a connection: among connections of which one can
 * carry many requests (HTTP/2), libcurl 7.88 takes the first one for the next request, be it of
 * HTTP/1.1 and busy. Behind a watch that request would wait until the watch ends, and be carried
 * out then, long after it was given up. */
static CURLSH *open_streams(void)
{
    CURLSH *streams = curl_share_init();
    CURLSHcode code = curl_share_setopt(streams, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
    assert(code == CURLSHE_OK);
    return streams;
}

static void ignore_sigpipe(void)
{
    struct sigaction action; /* OpenSSL writes without MSG_NOSIGNAL */
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

int http_open(struct http **ret_http, const struct http_options *options, struct error *err)
{
    assert(options->max_body_bytes && options->max_line_bytes && options->max_in_flight);
    ignore_sigpipe();
    CURLcode code =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, xmalloc, free, xrealloc, xstrdup, xcalloc);
    if (code)
        return error_set(err, ERR_IO, "start libcurl: %s", curl_easy_strerror(code));
    struct http *http = xcalloc(1, sizeof *http);
    http->options = *options;
    http->end = &http->first;
    http->multi = curl_multi_init();
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)options->max_in_flight);
    http->streams = open_streams();
    *ret_http = http;
    return 0;
}

static void free_tls(struct http_tls *tls)
{
    free((char *)tls->ca);
    free((char *)tls->certificate);
    free((char *)tls->key);
    free((char *)tls->server_name);
    *tls = (struct http_tls){0};
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void http_set_tls(struct http *http, const struct http_tls *tls)
{
    free_tls(&http->tls);
    http->tls = (struct http_tls){
        .ca = copy(tls->ca),
        .certificate = copy(tls->certificate),
        .key = copy(tls->key),
        .server_name = copy(tls->server_name),
    };
}

/* Frees the dropped. */
static void sweep(struct http *http)
{
    struct http_request **at = &http->first;
    while (*at) {
        struct http_request *r = *at;
        if (r->state == HTTP_REQUEST_DROPPED) {
            *at = r->next;
            http_request_close(r);
        } else {
            at = &r->next;
        }
    }
    http->end = at;
}

/* Takes a request off libcurl, if it is there. A transfer that is not over ends with this. */
static void detach(struct http *http, struct http_request *r)
{
    if (!r->easy)
        return;
    curl_multi_remove_handle(http->multi, r->easy);
    curl_easy_cleanup(take(r->easy));
    http->running--;
}

static void drop(struct http *http, struct http_request *r)
{
    detach(http, r);
    r->state = HTTP_REQUEST_DROPPED;
    http->alive--;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    assert(!http->calling_back);
    for (struct http_request *r = http->first; r; r = r->next)
        drop(http, r);
    sweep(http);
    curl_share_cleanup(http->streams); /* with its connections: no request is left */
    curl_multi_cleanup(http->multi);
    free_tls(&http->tls);
    free(http);
    curl_global_cleanup();
}

/* ---- requests ---- */

struct http_request *http_send(struct http *http, const struct http_call *call)
{
    struct http_request *r = http_request_open(call, &http->options);
    *http->end = r;
    http->end = &r->next;
    http->alive++;
    return r;
}

void http_cancel(struct http *http, struct http_request *request)
{
    if (!request)
        return;
    assert(request->state != HTTP_REQUEST_DROPPED);
    drop(http, request);
    if (!http->calling_back)
        sweep(http);
}

size_t http_in_flight(const struct http *http)
{
    return http->alive;
}

static void fail(struct http *http, struct http_request *r, const struct error *err)
{
    detach(http, r);
    http_request_fail(r, err);
}

/* ---- the loop's steps ---- */

static void start_waiting(struct http *http)
{
    int64_t now_ms = clock_monotonic_ms();
    struct http_request *r = http->first;
    for (; r; r = r->next) {
        struct error err;
        bool must_wait = http->running >= http->options.max_in_flight && !r->call.urgent;
        if (r->state != HTTP_REQUEST_WAITING || must_wait)
            continue;
        int result = http_request_start(r, &http->tls, http->streams, now_ms, &err);
        curl_multi_add_handle(http->multi, r->easy);
        http->running++;
        if (result < 0)
            fail(http, r, &err);
    }
}

/* How long libcurl may wait: timeout_ms, the next deadline, or not at all if something is to be
 * reported. */
static int wait_ms(const struct http *http, int timeout_ms)
{
    int64_t now_ms = clock_monotonic_ms(), wait = timeout_ms < 0 ? INT_MAX : timeout_ms;
    if (http->pushed)
        return 0;
    for (const struct http_request *r = http->first; r; r = r->next) {
        int64_t left_ms = wait;
        if (r->state == HTTP_REQUEST_FINISHED)
            left_ms = 0;
        else if (r->state == HTTP_REQUEST_RUNNING)
            left_ms = http_request_deadline(r) - now_ms;
        wait = left_ms < wait ? left_ms : wait;
    }
    return wait < 0 ? 0 : (int)wait;
}

static int wait_and_move(struct http *http, struct pollfd *fds, size_t fd_count, int timeout_ms,
                         struct error *err)
{
    struct curl_waitfd waits[HTTP_POLL_FDS_MAX];
    for (size_t i = 0; i < fd_count; i++)
        waits[i] = (struct curl_waitfd){
            .fd = fds[i].fd,
            .events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                              (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0)),
        };
    int wait = wait_ms(http, timeout_ms), still_running;
    CURLMcode code = curl_multi_poll(http->multi, waits, (unsigned)fd_count, wait, NULL);
    if (!code)
        code = curl_multi_perform(http->multi, &still_running);
    /* libcurl does not report POLLHUP and POLLERR */
    if (poll(fds, fd_count, 0) < 0)
        for (size_t i = 0; i < fd_count; i++)
            fds[i].revents = 0;
    return code ? error_set(err, ERR_IO, "wait for connections: %s", curl_multi_strerror(code)) : 0;
}

static void take_finished(struct http *http)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        CURLcode code = message->data.result;
        struct http_request *r = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        http_request_finish(r, code);
        detach(http, r);
    }
}

static void fail_late(struct http *http)
{
    int64_t now_ms = clock_monotonic_ms();
    for (struct http_request *r = http->first; r; r = r->next) {
        struct error err;
        if (r->state != HTTP_REQUEST_RUNNING || now_ms < http_request_deadline(r))
            continue;
        http_request_late(r, now_ms, &err);
        fail(http, r, &err);
    }
}

static void give_lines(struct http *http, struct http_request *r)
{
    const char *line;
    size_t bytes;
    struct error err;
    int found = 0;
    while (r->state != HTTP_REQUEST_DROPPED &&
           (found = http_request_next_line(r, &line, &bytes, &err)) > 0)
        r->call.line(r->call.context, line, bytes);
    if (found < 0)
        fail(http, r, &err);
}

static void call_back(struct http *http)
{
    http->calling_back = true;
    for (struct http_request *r = http->first; r; r = r->next) {
        if (r->state == HTTP_REQUEST_RUNNING || r->state == HTTP_REQUEST_FINISHED)
            give_lines(http, r);
        if (r->state == HTTP_REQUEST_FINISHED) {
            drop(http, r);
            r->call.done(r->call.context, &r->answer);
        }
    }
    http->calling_back = false;
    sweep(http);
}

void http_push(struct http *http)
{
    int still_running;
    start_waiting(http);
    curl_multi_perform(http->multi, &still_running); /* if it fails, http_poll tells */
    take_finished(http);
    http->pushed = true;
}

int http_poll(struct http *http, struct pollfd *fds, size_t fd_count, int timeout_ms,
              struct error *err)
{
    assert(!http->calling_back && fd_count <= HTTP_POLL_FDS_MAX);
    start_waiting(http);
    int result = wait_and_move(http, fds, fd_count, timeout_ms, err);
    http->pushed = false;
    take_finished(http);
    fail_late(http);
    call_back(http);
    return result;
}
