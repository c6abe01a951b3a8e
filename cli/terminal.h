/* Where a run shows itself: the leader's bytes on stdout, lines of our own and the live view on
 * stderr. The view sits below everything else; it is erased before anything is written and drawn
 * again after. Knows text, not jobs. */
#ifndef SHOAL_CLI_TERMINAL_H
#define SHOAL_CLI_TERMINAL_H

#include "cli/output.h"

enum terminal_mode { TERMINAL_AUTO, TERMINAL_ALWAYS, TERMINAL_NEVER };

struct terminal {
    bool live;        /* there is a view */
    bool shares_line; /* stdout shows on the same screen */
    bool mid_line;    /* stdout stands within a line there; the view begins below it */
    int column;       /* and has come that far in it, from 0; -1: that is not known */
    struct output output;
    struct str view; /* drawn and not yet erased */
    int stop_fd;     /* readable when someone wants to stop: then stdout is not waited for */
};

/* AUTO: live if stderr is a terminal that can move its cursor. */
void terminal_open(struct terminal *terminal, enum terminal_mode mode, int stop_fd);
void terminal_close(struct terminal *terminal); /* erases the view; drops what is kept */

/* The size of the terminal at fd; false and nothing written: there is none, or it has no size. */
bool terminal_window(int fd, int *ret_columns, int *ret_rows);

/* Whether the locale's variables (LC_ALL, else LC_CTYPE, else LANG) say UTF-8. */
bool terminal_is_unicode(char *(*environment)(const char *name));

void terminal_size(int *ret_columns, int *ret_rows); /* stderr's; 80 x 24 if unknown */

/* Bytes for stdout, as they are: what its reader does not take now is kept, see cli/output.h. Waits
 * only when no more can be kept. Never waits for a reader that is gone, or that stopped reading
 * while we are asked to stop: for those they are dropped. */
void terminal_output(struct terminal *terminal, const char *bytes, size_t count);

/* What is kept goes on as far as possible without waiting. */
void terminal_flush(struct terminal *terminal);

/* Waits until all of it has gone, for a reader that takes something every patience_ms (-1: for any
 * reader, until we are asked to stop). */
void terminal_drain(struct terminal *terminal, int patience_ms);

/* A line to stderr, above the view. */
void terminal_line(struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Draws the view anew; text ends with a newline. Nothing happens if there is no view, or no telling
 * how to go back from it to where stdout stands. */
void terminal_draw(struct terminal *terminal, const char *text);
#endif
