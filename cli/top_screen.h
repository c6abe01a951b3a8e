/* What `shoal top` shows on a terminal: text from facts. Pure. */
#ifndef SHOAL_CLI_TOP_SCREEN_H
#define SHOAL_CLI_TOP_SCREEN_H

#include "cli/job_table.h"

struct top_screen {
    const char *source; /* where the jobs are: an API server's address */
    struct job_table table;
    const char *trouble; /* why the jobs are not those of now; NULL: they are */
    int64_t read_ms;     /* when they were read; 0: not yet */
};

/* Lines of at most `columns` - 1 characters, fewer than `rows` of them where those are 4 or more:
 * jobs for which there is no room are counted. */
void top_screen_render(const struct top_screen *screen, int columns, int rows, int64_t now_ms,
                       struct str *out);
#endif
