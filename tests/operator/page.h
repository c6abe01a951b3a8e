/* Pages of health and metrics, asked for over a real socket. */
#ifndef SHOAL_TESTS_OPERATOR_PAGE_H
#define SHOAL_TESTS_OPERATOR_PAGE_H

/* The whole answer to "GET path" at 127.0.0.1:port, status line and headers included; the caller
 * frees it. Fails the test if nobody listens. */
char *page_get(int port, const char *path);
#endif
