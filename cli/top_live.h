/* `shoal top` on a terminal: reads the jobs again and again, draws them on a screen of its own and
 * takes keys. */
#ifndef SHOAL_CLI_TOP_LIVE_H
#define SHOAL_CLI_TOP_LIVE_H

#include "base/error.h"
#include "cli/job_table.h"

struct arena;

/* Where the jobs are. */
struct top_source {
    const char *name;
    /* Reads them into the arena. ERR_CANCELLED: stop_fd was readable. */
    int (*read)(void *context, struct arena *arena, struct job_table *table, struct error *err);
    void *context;
};

/* Until somebody quits or wants to stop: 0. Fails if the jobs cannot be read at the first time;
 * what fails later is shown. `table`: the order and what is shown of the jobs. */
int top_live_run(const struct top_source *source, struct job_table table, int64_t interval_ms,
                 int stop_fd, struct error *err);
#endif
