/* Which connections base/httpd serves, the oldest first, so that there is always room for one more.
 * The server's thread's. Private to base/httpd. */
#ifndef SHOAL_BASE_HTTPD_CONNECTIONS_H
#define SHOAL_BASE_HTTPD_CONNECTIONS_H

#include "base/httpd.h"
#include "base/httpd_pages.h"

#include <stdbool.h>

struct lws;

struct httpd_connections {
    struct lws *list[HTTPD_CONNECTIONS_MAX]; /* without those that were asked to close */
    int count;
};

/* Sets what every connection's socket is to be like. */
void httpd_connections_tune(int fd);

/* If there is no room, asks the oldest one that may_go to close. Returns whether there is room. */
bool httpd_connections_make_room(struct httpd_connections *connections,
                                 bool (*may_go)(struct lws *wsi));
/* Whoever reads slowly holds a page of its own: of those that are being sent the oldest
 * connections' are let go, and asked to close, until no more than HTTPD_HELD_BYTES_MAX are held
 * beside that of `own`. page_of: what a connection is being sent; NULL: nothing. let_go: it is sent
 * no more. */
void httpd_connections_shed(struct httpd_connections *connections, struct lws *own,
                            const struct httpd_page *(*page_of)(struct lws *wsi),
                            void (*let_go)(struct lws *wsi));
/* There is room. */
void httpd_connections_add(struct httpd_connections *connections, struct lws *wsi);
/* It is closed. One that is not in the list is no error. */
void httpd_connections_forget(struct httpd_connections *connections, const struct lws *wsi);
#endif
