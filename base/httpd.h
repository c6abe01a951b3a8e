/* HTTP/1.1 server in one thread of its own: serves what others have published, a whole answer per
 * path, and sends what others push to the WebSockets that listen. It knows nothing of what either
 * means. A busy program stays visible, for it answers from the last snapshot. Plain text on the
 * wire: what is served must not be secret. The process ignores SIGPIPE from then on (libwebsockets'
 * doing).
 *
 * A web page that is served can load what this server serves and nothing else, holds no script of
 * its own, and is shown in no frame (Content-Security-Policy).
 *
 * GET and HEAD of published paths (exact; a query is ignored); 404 for others, and 503 before any
 * is published; 405 for other methods, 400 for a request with content; CONNECT and upgrades to
 * anything but a WebSocket end the connection. Beyond HTTPD_CONNECTIONS_MAX connections the oldest
 * that is no WebSocket's is closed for the new one; beyond what the process may open files the new
 * one. Requests with more than HTTPD_REQUEST_BYTES_MAX of headers, among which a browser sends the
 * cookies of all servers of a host, whatever their ports, and clients that do not go on for
 * HTTPD_PATIENCE_S are closed too. While clients read answers of their own slowly, these take
 * HTTPD_HELD_BYTES_MAX and one answer more: for another one the oldest connections are closed. */
#ifndef SHOAL_BASE_HTTPD_H
#define SHOAL_BASE_HTTPD_H

#include "base/error.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

#define HTTPD_PATHS_MAX         32
#define HTTPD_BRANCHES_MAX      4
#define HTTPD_BODY_BYTES_MAX    ((size_t)64 << 20)
#define HTTPD_HELD_BYTES_MAX    ((size_t)32 << 20)
#define HTTPD_CONNECTIONS_MAX   64
#define HTTPD_REQUEST_BYTES_MAX 16384
#define HTTPD_PATIENCE_S        10

/* Of WebSockets: streams of a server, listeners at once (they count as connections too), bytes of a
 * message, and messages that may wait for a listener. */
#define HTTPD_STREAMS_MAX         4
#define HTTPD_STREAM_CLIENTS_MAX  16
#define HTTPD_MESSAGE_BYTES_MAX   16384
#define HTTPD_STREAM_MESSAGES_MAX 64

struct httpd;

/* Listens (host, port and errors as in listen_tcp) and starts the thread. */
int httpd_open(struct httpd **ret_httpd, const char *host, int port, struct error *err);
/* Ends it, answers being sent included. NULL-safe. */
void httpd_close(struct httpd *httpd);

/* The port in fact. */
int httpd_port(const struct httpd *httpd);

/* From now on what arrives at a loopback address must call this machine by an address or as
 * localhost in its header Host; else it is answered by 403. So a web page cannot read what is
 * served by letting its own name point to 127.0.0.1. A proxy of the pod that delivers to 127.0.0.1
 * and passes a service's name on is answered by 403, too. From any thread. */
void httpd_local_names_only(struct httpd *httpd);

/* From now on `path` ("/metrics") is answered like this, until it is published again. Copies. From
 * any thread. At most HTTPD_PATHS_MAX paths and HTTPD_BODY_BYTES_MAX of body. */
void httpd_publish(struct httpd *httpd, const char *path, int status, const char *type,
                   const char *body, size_t bytes);

/* From now on `path` ("/jobs") and all that lies below it ("/jobs/a/b") is answered by what
 * `answer` adds to `body`, with status 200, unless the path is published; false: there is no such
 * page. It is called by the server's thread and must not wait: nobody is served meanwhile. At most
 * HTTPD_BRANCHES_MAX paths. From any thread. */
void httpd_answer_below(struct httpd *httpd, const char *path, const char *type,
                        bool (*answer)(void *context, const char *path, struct str *body),
                        void *context);

/* From now on `path`, which is published, must be published again every within_ms: else it is
 * answered by 503. For a page that says that its publisher lives. */
void httpd_expect(struct httpd *httpd, const char *path, int64_t within_ms);

/* From now on `path` ("/steps") takes WebSockets (RFC 6455, without subprotocols). Of web pages
 * (header Origin) it takes only those that this server's own name and port served, by http. Each
 * listener is sent the last message that was pushed there, if there is one, and all that come after
 * it. What it says itself is not read. 403 for other pages, 400 for a subprotocol, 503 for more
 * than HTTPD_STREAM_CLIENTS_MAX listeners, and 426 for a request that asks for no WebSocket; 404
 * for a WebSocket elsewhere. At most HTTPD_STREAMS_MAX paths. From any thread. */
void httpd_stream(struct httpd *httpd, const char *path);

/* Sends a message, UTF-8 text, to all who listen at `path`. Copies, never waits: a listener who is
 * more than HTTPD_STREAM_MESSAGES_MAX messages behind is dropped. From any thread. */
void httpd_push(struct httpd *httpd, const char *path, const char *text, size_t bytes);

/* How many listen at `path`, at this moment. From any thread. */
int httpd_listeners(struct httpd *httpd, const char *path);
#endif
