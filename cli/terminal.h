/* Where a run shows itself: the leader's bytes on stdout, lines of our own and the live view on
 * stderr. The view sits below everything else; it is erased before anything is written and drawn
 * again after. Knows text, not jobs. */
#ifndef SHOAL_CLI_TERMINAL_H
#define SHOAL_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum terminal_mode { TERMINAL_AUTO, TERMINAL_ALWAYS, TERMINAL_NEVER };

struct terminal {
    bool live;        /* there is a view */
    bool shares_line; /* stdout shows on the same screen */
    bool mid_line;    /* stdout stands within a line there: no room for a view below it */
    bool out_is_gone; /* the reader of stdout went away */
    int view_lines;   /* drawn and not yet erased */
    int stop_fd;      /* readable when someone wants to stop: then stdout is not waited for */
};

/* AUTO: live if stderr is a terminal that can move its cursor. */
void terminal_open(struct terminal *terminal, enum terminal_mode mode, int stop_fd);
void terminal_close(struct terminal *terminal); /* erases the view */

void terminal_size(int *ret_columns, int *ret_rows); /* 80 x 24 if unknown */

/* Bytes to stdout, as they are, now. Waits for a slow reader, but not for one that stopped reading
 * while we are asked to stop, nor for one that is gone: then they are dropped. */
void terminal_output(struct terminal *terminal, const char *bytes, size_t count);

/* A line to stderr, above the view. */
void terminal_line(struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Draws the view anew; text ends with a newline. Nothing happens if there is no view. */
void terminal_draw(struct terminal *terminal, const char *text);

#ifdef __cplusplus
}
#endif
#endif
