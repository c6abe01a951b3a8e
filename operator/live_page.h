/* Serves the live page of the board's jobs (docs/page.md), at an address of its own. */
#ifndef SHOAL_OPERATOR_LIVE_PAGE_H
#define SHOAL_OPERATOR_LIVE_PAGE_H

#include "base/error.h"
#include "operator/board/board.h"

struct live_page;

/* Listens. The board must outlive it. address: as in operator_config_address; "0": *ret_page is
 * NULL, which all functions take for a page that nobody looks at. */
int live_page_open(struct live_page **ret_page, const char *address, struct board *board,
                   struct error *err);
void live_page_close(struct live_page *page);

/* Tells those who look what has changed. To be called now and then; at most one message a second
 * is sent. */
void live_page_send(struct live_page *page, int64_t steady_ms);
#endif
