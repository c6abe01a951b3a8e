/* The heads of base/httpd's answers, and answers of one line. Private to base/httpd. */
#ifndef SHOAL_BASE_HTTPD_HEAD_H
#define SHOAL_BASE_HTTPD_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct lws;

enum { HTTPD_UPGRADE_REQUIRED = 426 }; /* RFC 9110, 15.5.22; lws has no name for it */

/* Of a body of so many bytes, which follows. Not 0: close the connection. */
int httpd_head_send(struct lws *wsi, int status, const char *content_type, size_t bytes);
/* An answer that is not published. Likewise. */
int httpd_head_send_line(struct lws *wsi, int status, const char *text, bool head_only);
#endif
