/* Who asks base/httpd in tests: over base/http, or by sockets of their own that may say and not say
 * what they like. Failures fail the test. */
#ifndef SHOAL_TESTS_BASE_GUEST_H
#define SHOAL_TESTS_BASE_GUEST_H

#include "base/httpd.h"

/* A server on a port of its own, and a page of it. */
struct httpd *guest_server(const char *host);
void guest_publish(struct httpd *httpd, const char *path, int status, const char *text);

/* A connection to 127.0.0.1. */
int guest_dial(int port);
/* Sends bytes and returns all that comes until the server closes. The caller frees. */
char *guest_exchange(int port, const char *bytes);

/* That this is what a GET is answered by. */
void guest_assert_page(int port, const char *path, long status, const char *body);
#endif
