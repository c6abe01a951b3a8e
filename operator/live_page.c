#include "operator/live_page.h"

#include <stdlib.h>

#include "base/httpd.h"
#include "base/mem.h"
#include "base/page.h"
#include "operator/serve.h"

enum { SEND_EVERY_MS = 1000 };

struct live_page {
    struct httpd *httpd;
    struct board *board;
    int64_t sent_ms;
};

int live_page_open(struct live_page **ret_page, const char *address, struct board *board,
                   struct error *err)
{
    struct httpd *httpd = NULL;
    *ret_page = NULL;
    if (serve_listen(address, &httpd, err) < 0)
        return error_wrap(err, "--ui-bind-address");
    if (!httpd)
        return 0;
    struct live_page *page = xcalloc(1, sizeof *page);
    *page = (struct live_page){.httpd = httpd, .board = board};
    httpd_local_names_only(httpd);
    page_publish(httpd);
    httpd_stream(httpd, PAGE_LIVE_PATH);
    httpd_answer_below(httpd, PAGE_JOBS_PATH, "application/json", board_answer, board);
    *ret_page = page;
    return 0;
}

void live_page_close(struct live_page *page)
{
    if (!page)
        return;
    httpd_close(page->httpd);
    free(page);
}

static void push(void *context, const char *text, size_t bytes)
{
    httpd_push(context, PAGE_LIVE_PATH, text, bytes);
}

void live_page_send(struct live_page *page, int64_t steady_ms)
{
    if (!page || (page->sent_ms && steady_ms - page->sent_ms < SEND_EVERY_MS))
        return;
    page->sent_ms = steady_ms;
    board_send(page->board, httpd_listeners(page->httpd, PAGE_LIVE_PATH) > 0, push, page->httpd);
}
