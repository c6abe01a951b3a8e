/* The messages of PAGE_LIVE_PATH: what has changed since the last ones, within HTTPD's limits. More
 * than fits becomes one that says to ask again for all. Private to the board. */
#ifndef SHOAL_OPERATOR_BOARD_BOARD_MESSAGES_H
#define SHOAL_OPERATOR_BOARD_BOARD_MESSAGES_H

#include "base/str.h"
#include "operator/board/board.h"

/* All zero: nothing has changed yet. */
struct board_messages {
    int64_t version;                      /* of the last message */
    int64_t sent_ms;                      /* steady clock: when it was sent */
    bool reload;                          /* more has changed than is told */
    bool heard;                           /* somebody listens */
    bool any;                             /* something has changed */
    struct str gone;                      /* keys as JSON, with commas */
    int count;                            /* of `texts` */
    struct str texts[BOARD_MESSAGES_MAX]; /* being filled: rows with commas */
};

/* Of what is not told row by row. */
void board_messages_gone(struct board_messages *messages, const char *key);
void board_messages_reload(struct board_messages *messages);

/* Between the two: the rows that have changed. */
void board_messages_begin(struct board_messages *messages, bool heard);
void board_messages_add(struct board_messages *messages, const char *row);
void board_messages_end(struct board_messages *messages, int64_t now_ms,
                        void (*send)(void *context, const char *text, size_t bytes), void *context);
#endif
