/* What the headers Host and Origin of a request say about who asks. A browser fills them in itself,
 * so a web page cannot lie in them. Private to base/httpd. */
#ifndef SHOAL_BASE_HTTPD_NAMES_H
#define SHOAL_BASE_HTTPD_NAMES_H

#include <stdbool.h>

struct lws;

/* Of the request that a connection has just received. */
bool httpd_names_is_websocket_upgrade(struct lws *wsi); /* and not for HTTP/2 (h2c) */
bool httpd_names_host_is_local(struct lws *wsi);        /* or it came from another machine */
bool httpd_names_origin_is_own(struct lws *wsi);        /* or no web page asks */

/* The rules of these, without a connection. */

/* Whether Host ("localhost:9401", "[::1]", "10.0.0.7") is an address or localhost, and not a name
 * that its owner may let point to this machine. */
bool httpd_names_local(const char *host);

/* Whether the page of Origin ("http://10.0.0.7:9401") came from the very server that Host names: by
 * scheme, name and port (RFC 6454, 5). We speak no TLS, so a page of https is another's. Who puts a
 * proxy with TLS in front checks Origin there, and takes it away. */
bool httpd_names_same(const char *origin, const char *host);
#endif
