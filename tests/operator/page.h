/* Pages of health, metrics and jobs, asked for over a real socket. */
#ifndef SHOAL_TESTS_OPERATOR_PAGE_H
#define SHOAL_TESTS_OPERATOR_PAGE_H

/* The whole answer to "GET path" at 127.0.0.1:port, status line and headers included; the caller
 * frees it. Fails the test if nobody listens. */
char *page_get(int port, const char *path);
/* The same of any request; headers: whole lines, or "". */
char *page_ask(int port, const char *method, const char *path, const char *host,
               const char *headers);
#endif
