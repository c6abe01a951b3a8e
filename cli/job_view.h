/* What people see of a running job: lines about what happens, the live view, the summary. Looks at
 * the local backend and changes nothing there. */
#ifndef SHOAL_CLI_JOB_VIEW_H
#define SHOAL_CLI_JOB_VIEW_H

#include "cli/inbox.h"
#include "cli/terminal.h"
#include "operator/local/local.h"

struct job_view {
    const struct job *job;
    struct local *local;
    struct terminal terminal;
    struct progress progress; /* set by the owner as reports come in */
    int64_t started_ms;
    int64_t drawn_ms;                                  /* last time */
    const char *state;                                 /* the job's, as last reported */
    struct local_replica replicas[LOCAL_REPLICAS_MAX]; /* as last reported */
    size_t replica_count;
};

/* Says what has changed since it was last called. `ending`: no restarts follow any more. */
void job_view_print_changes(struct job_view *view, const struct job_status *status, bool ending);

void job_view_draw(struct job_view *view, int64_t now_ms);

/* When the view is to be drawn next, given whether there is news; INT64_MAX without a view. */
int64_t job_view_due(const struct job_view *view, bool changed);

/* The table of replicas and how the job ended. */
void job_view_summarize(struct job_view *view, const struct job_status *status, int64_t now_ms);
#endif
