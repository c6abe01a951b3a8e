/* The WebSocket side of base/httpd: streams of messages, and the clients that listen to them. The
 * last messages of a stream are kept in one ring, and a client is no more than a place in it: what
 * it has not yet been sent is its queue. When the ring has wrapped around past that place, the
 * client has lost messages and is disconnected. Pushing is thread-safe; the rest is the server's
 * thread's. Private to base/httpd. */
#ifndef SHOAL_BASE_HTTPD_STREAMS_H
#define SHOAL_BASE_HTTPD_STREAMS_H

#include "base/httpd.h"

#include <stdbool.h>

struct lws;
struct httpd_streams;
struct httpd_client; /* a client's; NULL in a connection that is none */

struct httpd_streams *httpd_streams_open(void);
void httpd_streams_close(struct httpd_streams *streams); /* all clients have left */

void httpd_streams_add(struct httpd_streams *streams, const char *path);
void httpd_streams_push(struct httpd_streams *streams, const char *path, const char *text,
                        size_t bytes);
int httpd_streams_clients(struct httpd_streams *streams, const char *path);

bool httpd_streams_has(struct httpd_streams *streams, const char *path);
/* Why the connection, which asks for a WebSocket, may have none, and as which HTTP status; NULL: it
 * may, as the path is a stream's and a seat is free. */
const char *httpd_streams_refusal(struct httpd_streams *streams, struct lws *wsi, int *ret_status);
/* It has one now. NULL: the last seat was taken since. */
struct httpd_client *httpd_streams_join(struct httpd_streams *streams, struct lws *wsi);
void httpd_streams_leave(struct httpd_streams *streams, struct httpd_client *seat); /* NULL-safe */

/* Sends the next message, for the connection can be written to. Negative: close it. */
int httpd_streams_write(struct httpd_streams *streams, struct httpd_client *seat);
/* Something was pushed: asks to write to whoever waits, and drops who has lost messages. */
void httpd_streams_wake(struct httpd_streams *streams);
#endif
