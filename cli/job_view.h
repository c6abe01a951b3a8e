/* What people see of a running job: lines about what happens, the live view, the summary. Looks at
 * the local backend and changes nothing there. */
#ifndef SHOAL_CLI_JOB_VIEW_H
#define SHOAL_CLI_JOB_VIEW_H

#include "cli/curve.h"
#include "cli/inbox.h"
#include "cli/terminal.h"
#include "operator/local/local.h"

struct job_view {
    const struct job *job;
    struct local *local;
    struct terminal terminal;
    struct reports reports; /* set by the owner as they come in */
    struct series losses;   /* of the run, by those reports; series_free */
    bool unicode;           /* the terminal shows it */
    int64_t started_ms;
    int64_t drawn_ms;                                  /* last time */
    const char *state;                                 /* the job's, as last reported */
    char url[PROGRESS_URL_BYTES];                      /* likewise */
    struct local_replica replicas[LOCAL_REPLICAS_MAX]; /* as last reported */
    size_t replica_count;
    int32_t rank_restarts; /* likewise: what `shoal top` counts besides those of replicas */
};

/* Says what has changed since it was last called. `ending`: no restarts follow any more. */
void job_view_print_changes(struct job_view *view, const struct job_status *status, bool ending);

/* The owner has set `reports` anew. */
void job_view_take_reports(struct job_view *view);

void job_view_draw(struct job_view *view, int64_t now_ms);

/* When the view is to be drawn next, given whether there is news; INT64_MAX without a view. */
int64_t job_view_due(const struct job_view *view, bool changed);

/* The table of replicas and how the job ended. */
void job_view_summarize(struct job_view *view, const struct job_status *status, int64_t now_ms);
#endif
