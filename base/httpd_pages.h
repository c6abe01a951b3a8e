/* The table of what base/httpd serves: paths and their last published pages. A page does not change
 * any more, and is kept until the last who took it gives it back. Thread-safe. Private to
 * base/httpd. */
#ifndef SHOAL_BASE_HTTPD_PAGES_H
#define SHOAL_BASE_HTTPD_PAGES_H

#include "base/httpd.h"

#include <stdbool.h>

struct httpd_page {
    int holders; /* guarded by the table's mutex */
    int status;
    char *content_type;
    size_t bytes;
    char *body;
};

struct httpd_pages;

struct httpd_pages *httpd_pages_open(void);
void httpd_pages_close(struct httpd_pages *pages); /* all were given back */

void httpd_pages_put(struct httpd_pages *pages, const char *path, int status,
                     const char *content_type, const char *body, size_t bytes, int64_t now_ms);
/* See httpd_expect. now_ms is a clock that does not jump. */
void httpd_pages_expect(struct httpd_pages *pages, const char *path, int64_t within_ms,
                        int64_t now_ms);

/* See httpd_answer_below. */
void httpd_pages_answer_below(struct httpd_pages *pages, const char *path, const char *content_type,
                              bool (*answer)(void *context, const char *path, struct str *body),
                              void *context);

/* NULL: no such path. *ret_is_late: it was not published as often as is expected, or nothing was
 * yet. */
struct httpd_page *httpd_pages_acquire(struct httpd_pages *pages, const char *path, int64_t now_ms,
                                       bool *ret_is_late);
void httpd_pages_release(struct httpd_pages *pages, struct httpd_page *page); /* NULL-safe */
#endif
