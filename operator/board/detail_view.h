/* What the live page shows of a run's inside, as docs/page.md states it: read from what a pod
 * answers, which may be anything. Pure. */
#ifndef SHOAL_OPERATOR_BOARD_DETAIL_VIEW_H
#define SHOAL_OPERATOR_BOARD_DETAIL_VIEW_H

#include <stddef.h>

struct json;

enum {
    DETAIL_VIEW_TEXT_BYTES = 128, /* of a text */
    DETAIL_VIEW_NAME_BYTES = 32,  /* of a phase's or a kind of memory's name */
    DETAIL_VIEW_NAMES_MAX = 16,   /* phases, kinds of memory */
};

/* An object with the members that the page knows, of their types and within bounds, PAGE_RANKS_MAX
 * ranks among them; all else is left out. NULL: none is there. The caller owns it. */
struct json *detail_view(const char *text, size_t bytes);
#endif
