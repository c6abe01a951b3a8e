/* HTTP server for pages that are published now and then: libwebsockets in one thread of its own,
 * which answers with copies of what was last published. Whoever publishes never waits for a client,
 * and no client waits for the loop. GET and HEAD only. */
#ifndef SHOAL_BASE_HTTPD_H
#define SHOAL_BASE_HTTPD_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct httpd;

/* Listens and starts the thread. host: an address of this machine, "" for all. port 0: any free
 * one, see httpd_port. ERR_CONFIG if the port is in use, with a text that says so. */
int httpd_open(struct httpd **ret_httpd, const char *host, int port, struct error *err);
/* Ends the thread; connections are cut. NULL-safe. */
void httpd_close(struct httpd *httpd);

int httpd_port(const struct httpd *httpd);

/* From now on a GET of exactly this path is answered so. Copies. Thread-safe. */
void httpd_publish(struct httpd *httpd, const char *path, int status, const char *type,
                   const char *body, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
