/* libwebsockets belongs to the server's thread; from outside only lws_cancel_service may be called.
 * The listening socket is ours, adopted as a file, so that its errors and the cap on connections
 * are ours too. One lws callback per protocol maps a reason to a function. */
#include "base/httpd.h"

#include "base/clock.h"
#include "base/httpd_connections.h"
#include "base/httpd_head.h"
#include "base/httpd_names.h"
#include "base/httpd_pages.h"
#include "base/httpd_streams.h"
#include "base/listen.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 * 1024, /* of a body, written at once */
    FULL_PAUSE_MS = 100,
    OWN_FDS = 16,    /* the listener, lws's own event pipe, and some to spare */
    LEAVING_MAX = 8, /* connections beyond the cap that are about to be closed */
};

struct httpd {
    struct lws_context *context;
    struct httpd_pages *pages;
    struct httpd_streams *streams;
    pthread_t thread;
    atomic_bool stop, local_names_only;
    int port;
    /* The thread's: */
    int sockets; /* open ones, the listener among them */
    int spare;   /* a file given up for a moment when the process may open no more */
    struct httpd_connections connections;
};

/* One connection's answer being sent, or its place among the listeners; lws allocates it. */
struct exchange {
    struct httpd_page *page; /* NULL: none */
    size_t sent;
    struct httpd_client *seat; /* NULL: not a WebSocket */
};

/* ---- answering ---- */

static struct httpd *httpd_of(struct lws *wsi)
{
    return lws_context_user(lws_get_context(wsi));
}

static void end_exchange(struct lws *wsi, struct exchange *x)
{
    if (x)
        httpd_pages_release(httpd_of(wsi)->pages, take(x->page));
}

/* Ready for the connection's next request, or -1 to close it. */
static int finish(struct lws *wsi)
{
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int refuse(struct lws *wsi, int status, const char *text, bool head_only)
{
    if (httpd_head_send_line(wsi, status, text, head_only))
        return -1;
    /* what has content, or may have as another method, is not read on */
    bool is_last = status == HTTP_STATUS_METHOD_NOT_ALLOWED || status == HTTP_STATUS_BAD_REQUEST;
    return is_last ? -1 : finish(wsi);
}

/* lws would go on to the next request behind the content, and spins without end, and without a time
 * limit, when that has arrived together with the request before. */
static bool has_content(struct lws *wsi)
{
    char length[8];
    int bytes = lws_hdr_copy(wsi, length, sizeof length, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    return (bytes != 0 && strcmp(length, "0") != 0) ||
           lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
}

static const char foreign_host[] = "Host is no address and not localhost";
static const char foreign_origin[] = "Origin is another server";

static bool is_host_welcome(struct lws *wsi)
{
    return !atomic_load(&httpd_of(wsi)->local_names_only) || httpd_names_host_is_local(wsi);
}

static const struct httpd_page *page_of(struct lws *wsi)
{
    const struct exchange *x = lws_wsi_user(wsi);
    return x ? x->page : NULL;
}

static void let_go(struct lws *wsi)
{
    end_exchange(wsi, lws_wsi_user(wsi));
}

static int on_request(struct lws *wsi, struct exchange *x, const char *path)
{
    bool is_head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
    bool is_get = lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0;
    if (!is_head && !is_get)
        return refuse(wsi, HTTP_STATUS_METHOD_NOT_ALLOWED, "method not allowed", false);
    if (has_content(wsi))
        return refuse(wsi, HTTP_STATUS_BAD_REQUEST, "content is not taken", is_head);
    end_exchange(wsi, x);
    if (!is_host_welcome(wsi))
        return refuse(wsi, HTTP_STATUS_FORBIDDEN, foreign_host, is_head);
    bool is_late;
    struct httpd_page *page =
        httpd_pages_acquire(httpd_of(wsi)->pages, path, clock_monotonic_ms(), &is_late);
    if (!page && is_late)
        return refuse(wsi, HTTP_STATUS_SERVICE_UNAVAILABLE, "nothing is published yet", is_head);
    if (!page && httpd_streams_has(httpd_of(wsi)->streams, path))
        return refuse(wsi, HTTPD_UPGRADE_REQUIRED, "only WebSockets are served here", is_head);
    if (!page)
        return refuse(wsi, HTTP_STATUS_NOT_FOUND, "not found", is_head);
    if (is_late) {
        httpd_pages_release(httpd_of(wsi)->pages, page);
        return refuse(wsi, HTTP_STATUS_SERVICE_UNAVAILABLE, "not published in time", is_head);
    }
    *x = (struct exchange){.page = page};
    httpd_connections_shed(&httpd_of(wsi)->connections, wsi, page_of, let_go);
    if (httpd_head_send(wsi, page->status, page->content_type, page->bytes))
        return -1;
    if (is_head || page->bytes == 0) {
        end_exchange(wsi, x);
        return finish(wsi);
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int on_writable(struct lws *wsi, struct exchange *x)
{
    if (!x->page)
        return 0;
    unsigned char out[LWS_PRE + CHUNK_BYTES];
    size_t left = x->page->bytes - x->sent, bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    memcpy(out + LWS_PRE, x->page->body + x->sent, bytes);
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, HTTPD_PATIENCE_S);
    if (lws_write(wsi, out + LWS_PRE, bytes,
                  bytes == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)bytes)
        return -1;
    x->sent += bytes;
    if (bytes < left) {
        lws_callback_on_writable(wsi);
        return 0;
    }
    end_exchange(wsi, x);
    return finish(wsi);
}

/* ---- streams ---- */

/* lws would take any WebSocket itself, and speak HTTP/2 with who asks for that (h2c), which in 4.1
 * reads freed memory. What is neither it has answered already, headers gone. 0: let it be one. */
static int on_upgrade(struct lws *wsi)
{
    if (!httpd_names_is_websocket_upgrade(wsi))
        return -1;
    int status = HTTP_STATUS_FORBIDDEN;
    const char *refusal = NULL;
    if (!is_host_welcome(wsi))
        refusal = foreign_host;
    else if (!httpd_names_origin_is_own(wsi))
        refusal = foreign_origin;
    else
        refusal = httpd_streams_refusal(httpd_of(wsi)->streams, wsi, &status);
    if (!refusal)
        return 0;
    httpd_head_send_line(wsi, status, refusal, false);
    return -1;
}

static int on_listening(struct lws *wsi, struct exchange *x)
{
    *x = (struct exchange){.seat = httpd_streams_join(httpd_of(wsi)->streams, wsi)};
    return x->seat ? 0 : -1;
}

static void end_listening(struct lws *wsi, struct exchange *x)
{
    httpd_streams_leave(httpd_of(wsi)->streams, take(x->seat));
}

static int on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t bytes)
{
    (void)bytes;
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return on_request(wsi, user, in);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_writable(wsi, user);
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        end_exchange(wsi, user);
        return 0;
    case LWS_CALLBACK_WSI_CREATE: /* reported to the first protocol, of every socket */
        httpd_of(wsi)->sockets++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        httpd_of(wsi)->sockets--;
        httpd_connections_forget(&httpd_of(wsi)->connections, wsi);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return on_upgrade(wsi);
    case LWS_CALLBACK_RAW_ADOPT: /* lws makes CONNECT's connection a pipe without time limits */
    case LWS_CALLBACK_RAW_RX:
        return -1;
    case LWS_CALLBACK_ESTABLISHED:
        return on_listening(wsi, user);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return httpd_streams_write(httpd_of(wsi)->streams, ((struct exchange *)user)->seat);
    case LWS_CALLBACK_CLOSED:
        end_listening(wsi, user);
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED: /* of no socket */
        httpd_streams_wake(httpd_of(wsi)->streams);
        return 0;
    default:
        return 0;
    }
}

/* No file is left for the connection: it is closed at once, or it would be reported for ever. */
static void refuse_connection(struct httpd *httpd, int listener)
{
    mem_cleanup_close(&httpd->spare);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    httpd->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || httpd->spare < 0)
        poll(NULL, 0, FULL_PAUSE_MS); /* the last resort */
}

/* Who holds all connections would keep out the probes that decide whether this process lives, and
 * who asks for a page needs a moment only. A WebSocket is for long, and has a cap of its own. */
static bool may_close(struct lws *wsi)
{
    const struct exchange *x = lws_wsi_user(wsi);
    return !x || !x->seat;
}

static void adopt(struct httpd *httpd, struct lws_vhost *vhost, int fd)
{
    bool has_room = httpd_connections_make_room(&httpd->connections, may_close);
    if (!has_room || httpd->sockets > HTTPD_CONNECTIONS_MAX + LEAVING_MAX) {
        close(fd);
        return;
    }
    struct lws *wsi = lws_adopt_socket_vhost(vhost, fd); /* closes what it does not take */
    if (wsi)
        httpd_connections_add(&httpd->connections, wsi);
}

static int on_listener(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                       size_t bytes)
{
    (void)user, (void)in, (void)bytes;
    if (reason != LWS_CALLBACK_RAW_RX_FILE)
        return 0;
    int fd = accept4(lws_get_socket_fd(wsi), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            refuse_connection(httpd_of(wsi), lws_get_socket_fd(wsi));
        return 0;
    }
    httpd_connections_tune(fd);
    adopt(httpd_of(wsi), lws_get_vhost(wsi), fd);
    return 0;
}

/* ---- life ---- */

static void *thread_main(void *arg)
{
    struct httpd *httpd = arg;
    while (!atomic_load(&httpd->stop) && lws_service(httpd->context, 0) >= 0)
        continue;
    return NULL;
}

/* Signals are for the threads that know of them, but for those of a thread's own faults: blocked,
 * they would end the process without a word from its handler. */
static int start_thread(struct httpd *httpd)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < array_length(faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failure = pthread_create(&httpd->thread, NULL, thread_main, httpd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failure;
}

static struct lws_context *open_context(struct httpd *httpd)
{
    static const struct lws_protocols protocols[] = {
        {.name = "http", .callback = on_http, .per_session_data_size = sizeof(struct exchange)},
        {.name = "listener", .callback = on_listener},
        {0},
    };
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = protocols,
        .user = httpd,
        .fd_limit_per_thread = HTTPD_CONNECTIONS_MAX + LEAVING_MAX + OWN_FDS,
        .max_http_header_data = HTTPD_REQUEST_BYTES_MAX,
        .max_http_header_pool = HTTPD_CONNECTIONS_MAX + LEAVING_MAX,
        .timeout_secs = HTTPD_PATIENCE_S,
        .keepalive_timeout = HTTPD_PATIENCE_S,
    };
    lws_set_log_level(0, NULL);
    return lws_create_context(&info);
}

int httpd_open(struct httpd **ret_httpd, const char *host, int port, struct error *err)
{
    auto_close int fd = -1;
    if (listen_tcp(host, port, &fd, err) < 0)
        return -1;
    struct httpd *httpd = xcalloc(1, sizeof *httpd);
    httpd->pages = httpd_pages_open();
    httpd->streams = httpd_streams_open();
    httpd->port = listen_port(fd);
    httpd->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    httpd->context = open_context(httpd);
    lws_sock_file_fd_type listener = {.filefd = fd};
    if (httpd->context &&
        lws_adopt_descriptor_vhost(lws_get_vhost_by_name(httpd->context, "default"),
                                   LWS_ADOPT_RAW_FILE_DESC, listener, "listener", NULL)) {
        fd = -1; /* lws closes it */
        int failure = start_thread(httpd);
        if (!failure) {
            *ret_httpd = httpd;
            return 0;
        }
    }
    if (httpd->context)
        lws_context_destroy(httpd->context);
    mem_cleanup_close(&httpd->spare);
    httpd_pages_close(httpd->pages);
    httpd_streams_close(httpd->streams);
    free(httpd);
    return error_set(err, ERR_IO, "start the HTTP server on port %d", port);
}

void httpd_close(struct httpd *httpd)
{
    if (!httpd)
        return;
    atomic_store(&httpd->stop, true);
    lws_cancel_service(httpd->context);
    pthread_join(httpd->thread, NULL);
    lws_context_destroy(httpd->context);
    mem_cleanup_close(&httpd->spare);
    httpd_pages_close(httpd->pages);
    httpd_streams_close(httpd->streams);
    free(httpd);
}

int httpd_port(const struct httpd *httpd)
{
    return httpd->port;
}

void httpd_local_names_only(struct httpd *httpd)
{
    atomic_store(&httpd->local_names_only, true);
}

void httpd_publish(struct httpd *httpd, const char *path, int status, const char *type,
                   const char *body, size_t bytes)
{
    httpd_pages_put(httpd->pages, path, status, type, body, bytes, clock_monotonic_ms());
}

void httpd_answer_below(struct httpd *httpd, const char *path, const char *type,
                        bool (*answer)(void *context, const char *path, struct str *body),
                        void *context)
{
    httpd_pages_answer_below(httpd->pages, path, type, answer, context);
}

void httpd_expect(struct httpd *httpd, const char *path, int64_t within_ms)
{
    httpd_pages_expect(httpd->pages, path, within_ms, clock_monotonic_ms());
}

void httpd_stream(struct httpd *httpd, const char *path)
{
    httpd_streams_add(httpd->streams, path);
}

void httpd_push(struct httpd *httpd, const char *path, const char *text, size_t bytes)
{
    httpd_streams_push(httpd->streams, path, text, bytes);
    lws_cancel_service(httpd->context);
}

int httpd_listeners(struct httpd *httpd, const char *path)
{
    return httpd_streams_clients(httpd->streams, path);
}
