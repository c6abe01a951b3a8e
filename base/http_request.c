#include "base/http_request.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* Lines that may come between two looks at them, beyond the longest: curl_multi_perform hands over
 * at most 100 buffers of 16 KiB of a transfer before it returns. */
#define LINES_AT_ONCE_BYTES ((size_t)4 << 20)

/* A connection that is quiet is probed; one whose bytes are not acknowledged is given up. Without
 * the latter new requests on a dead HTTP/2 connection would wait out TCP's quarter of an hour. */
#define PROBE_AFTER_S     15L
#define PROBE_EVERY_S     10L
#define UNACKNOWLEDGED_MS 30000
#define RETRY_AFTER_MAX_S (24 * 3600)
/* The least that libcurl takes, and most bodies are smaller; by itself it holds 64 KiB for each. */
#define UPLOAD_BYTES    (16L << 10)
#define URL_SHOWN_BYTES "200" /* of a URL in an error */
#define SHOWN(request)  (request)->method, (request)->url
#define SHOWN_FORMAT    "%s %." URL_SHOWN_BYTES "s"

/* ---- what the caller gave ---- */

/* A line break in a value would be a header of its own. */
static bool is_header_value(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static void add_header(struct http_request *r, const char *name, const char *value)
{
    auto_free char *line = xasprintf("%s: %s", name, value);
    r->headers = curl_slist_append(r->headers, line);
}

struct http_request *http_request_open(const struct http_call *call,
                                       const struct http_options *options)
{
    assert(call->method && call->url && call->done && (!call->body || call->content_type));
    struct http_request *r = xcalloc(1, sizeof *r);
    r->options = options;
    r->call = *call;
    /* what is the caller's is not to be found here later */
    r->call.content_type = r->call.bearer = r->call.user_agent = NULL;
    r->call.method = r->method = xstrdup(call->method);
    r->call.url = r->url = xstrdup(call->url);
    if (call->body) {
        r->call.body = r->body = xmalloc(call->body_bytes);
        memcpy(r->body, call->body, call->body_bytes);
        add_header(r, "Content-Type", call->content_type);
        r->headers = curl_slist_append(r->headers, "Expect:"); /* no round trip before the body */
    }
    if (call->user_agent)
        add_header(r, "User-Agent", call->user_agent);
    if (call->bearer && is_header_value(call->bearer)) {
        auto_free char *value = xasprintf("Bearer %s", call->bearer);
        add_header(r, "Authorization", value);
    } else if (call->bearer) {
        struct error err;
        error_set(&err, ERR_CONFIG,
                  SHOWN_FORMAT ": the token has a line break or control character", SHOWN(r));
        http_request_fail(r, &err);
    }
    return r;
}

void http_request_close(struct http_request *r)
{
    curl_easy_cleanup(r->easy);
    curl_slist_free_all(r->headers);
    curl_slist_free_all(r->connect_to);
    str_free(&r->text);
    free(r->method);
    free(r->url);
    free(r->body);
    free(r);
}

/* ---- libcurl's callbacks: no curl function but curl_easy_getinfo may be called here ---- */

static size_t on_header(char *bytes, size_t one, size_t count, void *context)
{
    (void)one;
    struct http_request *r = context;
    r->heard_ms = clock_monotonic_ms();
    if (count >= 5 && memcmp(bytes, "HTTP/", 5) == 0) /* an interim answer may come before */
        r->headers_whole = false;
    else if (count > 0 && (bytes[0] == '\r' || bytes[0] == '\n'))
        r->headers_whole = true;
    return count;
}

static size_t body_bytes_max(const struct http_request *r)
{
    return r->call.max_body_bytes ? r->call.max_body_bytes : r->options->max_body_bytes;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *context)
{
    (void)one;
    struct http_request *r = context;
    r->heard_ms = clock_monotonic_ms();
    if (!r->text.cap) {
        long status = 0;
        curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
        r->streamed = r->call.line && status / 100 == 2;
        str_init(&r->text, r->streamed ? r->options->max_line_bytes + LINES_AT_ONCE_BYTES
                                       : body_bytes_max(r));
    }
    str_add_bytes(&r->text, bytes, count);
    return r->text.truncated ? 0 : count;
}

static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    (void)context, (void)purpose;
    unsigned limit_ms = UNACKNOWLEDGED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
    return CURL_SOCKOPT_OK;
}

/* ---- starting ---- */

/* Every option is one that this libcurl knows and memory does not run out: a refusal is a bug. */
#define set(easy, option, value)                                                                   \
    do {                                                                                           \
        CURLcode set_code_ = curl_easy_setopt((easy), (option), (value));                          \
        assert(set_code_ == CURLE_OK);                                                             \
    } while (0)

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.data = (char *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    set(easy, option, &blob);
}

/* The connection goes to the URL's host, but TLS asks for and verifies another name. */
static int set_server_name(struct http_request *r, const char *server_name, struct error *err)
{
    char *host = NULL, *port = NULL, *named = NULL;
    CURLU *url = curl_url();
    CURLUcode code = curl_url_set(url, CURLUPART_URL, r->url, 0);
    if (!code)
        code = curl_url_get(url, CURLUPART_HOST, &host, 0);
    if (!code)
        code = curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (!code)
        code = curl_url_set(url, CURLUPART_HOST, server_name, 0);
    if (!code)
        code = curl_url_get(url, CURLUPART_URL, &named, 0);
    if (!code) {
        auto_free char *authority = xasprintf("%s:%s", host, port);
        auto_free char *route = xasprintf("::%s", authority);
        add_header(r, "Host", authority);
        r->connect_to = curl_slist_append(NULL, route);
        set(r->easy, CURLOPT_CONNECT_TO, r->connect_to);
        set(r->easy, CURLOPT_URL, named);
    }
    curl_free(host);
    curl_free(port);
    curl_free(named);
    curl_url_cleanup(url);
    return code ? error_set(err, ERR_CONFIG, SHOWN_FORMAT " (TLS server name %.100s): %s", SHOWN(r),
                            server_name, curl_url_strerror(code))
                : 0;
}

static int set_tls(struct http_request *r, const struct http_tls *tls, struct error *err)
{
    set(r->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    set(r->easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (tls->ca) {
        set_blob(r->easy, CURLOPT_CAINFO_BLOB, tls->ca);
        set(r->easy, CURLOPT_CAPATH, NULL); /* or the machine's authorities count as well */
    }
    if (tls->certificate && tls->key) {
        set_blob(r->easy, CURLOPT_SSLCERT_BLOB, tls->certificate);
        set_blob(r->easy, CURLOPT_SSLKEY_BLOB, tls->key);
    }
    return tls->server_name ? set_server_name(r, tls->server_name, err) : 0;
}

static void set_connection(CURL *easy, const struct http_options *options)
{
    /* Without it libcurl's resolver uses SIGALRM and longjmp for its time limit: no way for a
     * program with threads. */
    set(easy, CURLOPT_NOSIGNAL, 1L);
    /* A request that ends while its name is resolved does not wait for the resolver's thread. */
    set(easy, CURLOPT_QUICK_EXIT, 1L);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy, CURLOPT_TCP_KEEPIDLE, PROBE_AFTER_S);
    set(easy, CURLOPT_TCP_KEEPINTVL, PROBE_EVERY_S);
    set(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
}

static void set_exchange(struct http_request *r, CURLSH *streams)
{
    set(r->easy, CURLOPT_URL, r->url);
    bool tls = strncasecmp(r->url, "https:", 6) == 0, stream = r->call.line != NULL;
    /* A streamed answer has a connection of its own: beside busy streams of one connection libcurl
     * 7.88 stops handing on what has arrived for a quiet one, until it is cancelled. */
    set(r->easy, CURLOPT_HTTP_VERSION,
        (long)(stream ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    if (stream)
        set(r->easy, CURLOPT_SHARE, streams);
    /* rather a stream of a connection being made than one more; without TLS libcurl would wait for
     * the first answer to know that there are no streams */
    set(r->easy, CURLOPT_PIPEWAIT, (long)(tls && !stream));
    set(r->easy, CURLOPT_CUSTOMREQUEST, r->method);
    set(r->easy, CURLOPT_NOBODY, (long)(strcmp(r->method, "HEAD") == 0));
    if (r->body) {
        set(r->easy, CURLOPT_POSTFIELDS, r->body);
        set(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->call.body_bytes);
        set(r->easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
        set(r->easy, CURLOPT_CUSTOMREQUEST, r->method);
    }
    if (r->call.direct) {
        set(r->easy, CURLOPT_NOPROXY, "*");
        set(r->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    set(r->easy, CURLOPT_ERRORBUFFER, r->detail);
    set(r->easy, CURLOPT_PRIVATE, r);
    set(r->easy, CURLOPT_HEADERFUNCTION, on_header);
    set(r->easy, CURLOPT_HEADERDATA, r);
    set(r->easy, CURLOPT_WRITEFUNCTION, on_body);
    set(r->easy, CURLOPT_WRITEDATA, r);
}

int http_request_start(struct http_request *r, const struct http_tls *tls, CURLSH *streams,
                       int64_t now_ms, struct error *err)
{
    assert(r->state == HTTP_REQUEST_WAITING);
    r->easy = curl_easy_init();
    r->started_ms = r->heard_ms = now_ms;
    set_connection(r->easy, r->options);
    set_exchange(r, streams);
    if (set_tls(r, tls, err) < 0)
        return -1;
    set(r->easy, CURLOPT_HTTPHEADER, r->headers);
    r->state = HTTP_REQUEST_RUNNING;
    return 0;
}

/* ---- ending ---- */

int64_t http_request_deadline(const struct http_request *r)
{
    int64_t deadline_ms = INT64_MAX;
    if (r->call.timeout_ms)
        deadline_ms = r->started_ms + r->call.timeout_ms;
    if (r->call.idle_timeout_ms && r->heard_ms + r->call.idle_timeout_ms < deadline_ms)
        deadline_ms = r->heard_ms + r->call.idle_timeout_ms;
    return deadline_ms;
}

int http_request_late(const struct http_request *r, int64_t now_ms, struct error *err)
{
    if (r->call.timeout_ms && now_ms >= r->started_ms + r->call.timeout_ms)
        return error_set(err, ERR_TIMEOUT, SHOWN_FORMAT ": no whole answer within %" PRId64 " ms",
                         SHOWN(r), r->call.timeout_ms);
    return error_set(err, ERR_TIMEOUT, SHOWN_FORMAT ": nothing received for %" PRId64 " ms",
                     SHOWN(r), r->call.idle_timeout_ms);
}

static int64_t retry_after_ms(CURL *easy)
{
    struct curl_header *header;
    int64_t seconds;
    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        !str_to_i64(header->value, 0, RETRY_AFTER_MAX_S, &seconds))
        return -1;
    return seconds * 1000;
}

/* libcurl knows a certificate problem by the TLS layer's word for it. A signature made by another
 * key under the authority's name (a cluster that was set up anew) is known by the arithmetic. */
static bool is_bad_signature(const struct http_request *r, CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR && strstr(r->detail, "error:") &&
           !strstr(r->detail, "SSL routines");
}

static enum error_code code_of(CURLcode code)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return ERR_CONFIG;
    default:
        return ERR_IO;
    }
}

static void describe(const struct http_request *r, CURLcode code, struct error *err)
{
    const char *detail = r->detail[0] ? r->detail : curl_easy_strerror(code);
    long os_errno = 0;
    curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (is_bad_signature(r, code))
        error_set(err, ERR_CONFIG,
                  SHOWN_FORMAT
                  ": SSL certificate problem: signed in the name of the given authority, "
                  "but not by its key: is the CA an old one? (%s)",
                  SHOWN(r), detail);
    else if (code == CURLE_COULDNT_CONNECT && os_errno)
        error_set(err, ERR_IO, SHOWN_FORMAT ": %s: %s", SHOWN(r), detail, strerror((int)os_errno));
    else
        error_set(err, code_of(code), SHOWN_FORMAT ": %s", SHOWN(r), detail);
}

void http_request_finish(struct http_request *r, CURLcode code)
{
    struct error err;
    if (r->text.truncated) {
        error_set(&err, ERR_LIMIT, SHOWN_FORMAT ": the answer is larger than %zu bytes", SHOWN(r),
                  r->text.cap);
        http_request_fail(r, &err);
        return;
    }
    if (code != CURLE_OK) {
        describe(r, code, &err);
        http_request_fail(r, &err);
        return;
    }
    if (!r->headers_whole) { /* which libcurl takes for an answer without a body */
        error_set(&err, ERR_IO, SHOWN_FORMAT ": the answer breaks off in its headers", SHOWN(r));
        http_request_fail(r, &err);
        return;
    }
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->answer.status);
    r->answer.retry_after_ms = retry_after_ms(r->easy);
    r->answer.body = r->streamed ? "" : str_text(&r->text);
    r->answer.body_bytes = r->streamed ? 0 : r->text.length;
    r->state = HTTP_REQUEST_FINISHED;
}

void http_request_fail(struct http_request *r, const struct error *err)
{
    r->answer = (struct http_answer){.body = "", .retry_after_ms = -1, .err = *err};
    r->state = HTTP_REQUEST_FINISHED;
}

/* ---- lines ---- */

/* Forgets the lines that were given out. */
static void drop_lines(struct http_request *r)
{
    size_t left = r->text.length - r->line_at;
    if (left == 0) { /* most watches are quiet most of the time: no memory then */
        str_free(&r->text);
    } else if (r->line_at > 0) {
        memmove(r->text.text, r->text.text + r->line_at, left + 1);
        r->text.length = left;
    }
    r->line_at = 0;
}

int http_request_next_line(struct http_request *r, const char **ret_line, size_t *ret_bytes,
                           struct error *err)
{
    if (!r->streamed)
        return 0;
    const char *start = str_text(&r->text) + r->line_at;
    size_t left = r->text.length - r->line_at;
    const char *newline = memchr(start, '\n', left);
    size_t bytes = newline ? (size_t)(newline - start) : left;
    if (bytes > r->options->max_line_bytes)
        return error_set(err, ERR_LIMIT, SHOWN_FORMAT ": a line is longer than %zu bytes", SHOWN(r),
                         r->options->max_line_bytes);
    bool whole = r->state == HTTP_REQUEST_FINISHED && r->answer.err.code == ERR_NONE;
    if (!newline && !(whole && left > 0)) {
        drop_lines(r);
        return 0;
    }
    *ret_line = start;
    *ret_bytes = bytes;
    r->line_at += bytes + (newline ? 1 : 0);
    return 1;
}
