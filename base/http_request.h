/* One request of base/http as libcurl sees it: its easy handle, the bytes that came so far, and
 * what an end of it means. libcurl's callbacks are here; they only append bytes. Knows no other
 * request and no multi handle. Private to base/http. */
#ifndef SHOAL_BASE_HTTP_REQUEST_H
#define SHOAL_BASE_HTTP_REQUEST_H

#include "base/http.h"
#include "base/str.h"

#include <curl/curl.h>

enum http_request_state {
    HTTP_REQUEST_WAITING,  /* for its turn */
    HTTP_REQUEST_RUNNING,  /* has an easy handle */
    HTTP_REQUEST_FINISHED, /* `done` is to be called with its answer */
    HTTP_REQUEST_DROPPED,  /* nobody knows it any more: to be freed */
};

struct http_request {
    struct http_request *next; /* in order of http_send */
    enum http_request_state state;
    const struct http_options *options; /* borrowed */
    struct http_call call;              /* its texts are these copies, or NULL: */
    char *method, *url, *body;
    struct curl_slist *headers, *connect_to;
    CURL *easy; /* NULL unless running */
    char detail[CURL_ERROR_SIZE];
    int64_t started_ms, heard_ms; /* monotonic */
    bool headers_whole;           /* of the answer */
    bool streamed;                /* a 2xx answer is given out as lines */
    struct str text;              /* of the answer: its body, or lines not given out yet */
    size_t line_at;               /* where in text the next line starts */
    struct http_answer answer;
};

struct http_request *http_request_open(const struct http_call *call,
                                       const struct http_options *options);
void http_request_close(struct http_request *request);

/* Makes the easy handle. A streamed answer's connection comes from `streams`. Errors are the call's
 * or tls's fault: ERR_CONFIG. */
int http_request_start(struct http_request *request, const struct http_tls *tls, CURLSH *streams,
                       int64_t now_ms, struct error *err);

/* When it is to be ended with the error http_request_late describes; INT64_MAX: never. */
int64_t http_request_deadline(const struct http_request *request);
int http_request_late(const struct http_request *request, int64_t now_ms, struct error *err);

/* Fills the answer from how libcurl's transfer ended, or from an error of our own. */
void http_request_finish(struct http_request *request, CURLcode code);
void http_request_fail(struct http_request *request, const struct error *err);

/* The next line to give out, borrowed until more bytes come. Returns 1, 0 if there is none, -1 for
 * one that is too long. */
int http_request_next_line(struct http_request *request, const char **ret_line, size_t *ret_bytes,
                           struct error *err);
#endif
