/* HTTP client: owns one curl_multi and every request in flight. Knows bytes, lines and status
 * codes; paths and meanings are its callers'. One thread: the thread that opened the client makes
 * all calls. Callbacks run only inside http_poll, after libcurl has returned, so they may send and
 * cancel, but not poll and close. HTTP/2 where TLS offers it, but each streamed answer has a
 * connection of its own with HTTP/1.1; certificates are always verified; redirects are not
 * followed; a dead peer is noticed within a minute by TCP's own probes. http_open makes the process
 * ignore SIGPIPE if it has the default action. */
#ifndef SHOAL_BASE_HTTP_H
#define SHOAL_BASE_HTTP_H

#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_POLL_FDS_MAX 16

struct http;
struct http_request; /* in flight; valid until its `done` was called or it was cancelled */

/* PEM text, borrowed until http_set_tls returns; NULL: none. */
struct http_tls {
    const char *ca;          /* NULL: the machine's own authorities */
    const char *certificate; /* the client's, with key */
    const char *key;
    const char *server_name; /* verified instead of the URL's host; NULL: the host */
};

struct http_options {
    size_t max_body_bytes; /* of an answer; more: ERR_LIMIT */
    size_t max_line_bytes; /* of a streamed answer's line */
    size_t max_in_flight; /* more wait in order of http_send, but for urgent ones; a watch takes one
                             all its life */
    int64_t connect_timeout_ms; /* name, TCP and TLS together */
};

/* What came back. Lives until `done` returns. */
struct http_answer {
    long status;      /* 0: no answer, see err */
    const char *body; /* 0-terminated; "" if it was streamed as lines with a 2xx status */
    size_t body_bytes;
    int64_t retry_after_ms; /* header Retry-After in seconds; -1: absent or a date */
    struct error err;       /* code ERR_NONE if there was a whole answer, of whatever status */
};

struct http_call {
    const char *method; /* "GET", ... */
    const char *url;
    const char *body; /* NULL: none; copied */
    size_t body_bytes;
    const char *content_type; /* of the body */
    const char *bearer;       /* token for Authorization, without "Bearer "; NULL: none */
    const char *user_agent;   /* NULL: none */
    /* Of a host that will hardly be asked again soon: through no proxy of the environment, and its
     * connection is not kept. */
    bool direct;
    size_t max_body_bytes; /* less than http_options has; 0: as that */
    bool urgent;           /* does not wait for others to end: max_in_flight is not for it */
    /* Both count from when it leaves the queue. */
    int64_t timeout_ms;      /* for all of it; 0: none (a watch) */
    int64_t idle_timeout_ms; /* nothing received for so long: ERR_TIMEOUT; 0: none */
    /* Each line of a 2xx answer, without its newline, not 0-terminated; NULL: the answer is
     * collected as body. What follows the last newline is a line only if the answer is whole.
     * Lines over the limit fail the request, after those before them. */
    void (*line)(void *context, const char *line, size_t bytes);
    /* Called once, unless the request is cancelled. err->code: ERR_IO (no connection, cut off),
     * ERR_TIMEOUT, ERR_LIMIT, ERR_CONFIG (a bad URL or token, certificates that do not verify). */
    void (*done)(void *context, const struct http_answer *answer);
    void *context;
};

int http_open(struct http **ret_http, const struct http_options *options, struct error *err);
/* Cancels all requests. NULL-safe. */
void http_close(struct http *http);

/* For requests that leave the queue from now on: if it has changed, they make new connections.
 * Copies. */
void http_set_tls(struct http *http, const struct http_tls *tls);

/* Cannot fail: what is wrong is reported by `done`. Copies all texts. */
struct http_request *http_send(struct http *http, const struct http_call *call);
/* `done` will not be called. NULL-safe. */
void http_cancel(struct http *http, struct http_request *request);
/* Those whose `done` has not been called, waiting ones included. */
size_t http_in_flight(const struct http *http);

/* Sends what was not sent yet, without waiting: for a callback that has long work to do. Answers
 * come with the next http_poll, which does not wait then. */
void http_push(struct http *http);

/* Waits until something happened on a connection or one of `fds` (revents are set), or timeout_ms
 * is over (-1: no limit); then calls back for all that is complete. May return early. At most
 * HTTP_POLL_FDS_MAX fds. */
int http_poll(struct http *http, struct pollfd *fds, size_t fd_count, int timeout_ms,
              struct error *err);
#endif
