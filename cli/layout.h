/* How text is laid out in the columns of a terminal. Pure. */
#ifndef SHOAL_CLI_LAYOUT_H
#define SHOAL_CLI_LAYOUT_H

#include "base/str.h"

enum { LAYOUT_UNLIMITED = 1 << 20 }; /* columns where lines are not cut: in a file or pipe */

/* The columns of a terminal that a line may take: all but the last. */
int layout_room(int columns);

/* The end of a name, which tells it from others: at most `width` characters, and no part of a
 * number. */
const char *layout_end_of_name(const char *name, int width);

/* Adds "[####----]" of `width` characters between the brackets, LAYOUT_BAR_MAX at most; done:
 * 0 to 1. */
enum { LAYOUT_BAR_MAX = 60 };
void layout_bar(double done, int width, struct str *out);

/* Adds the text and a newline to a line that has come to column `at`. Breaks it between words; what
 * follows a break is indented by `indent`. A word longer than a line stays whole. */
void layout_wrap(const char *text, int at, int indent, int columns, struct str *out);

/* A table whose columns give way where there is little room. */
struct layout_column {
    const char *title;
    bool is_right; /* numbers */
    int rank;      /* columns of the highest rank give way first; of rank 0 never */
};
enum { LAYOUT_COLUMNS_MAX = 16 };
struct layout_table {
    const struct layout_column *columns;
    size_t
        column_count; /* the first has rank 0: its cells are cut to ".." and their ends at last */
    const char *const *cells; /* row by row */
    const char *const *below; /* of each row: text below it, wrapped; "": none. NULL: none at all */
    size_t row_count;
};
void layout_table(const struct layout_table *table, int columns, struct str *out);
#endif
