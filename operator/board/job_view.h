/* What the live page shows of a job, as docs/page.md states it: never its pod templates. Pure. */
#ifndef SHOAL_OPERATOR_BOARD_JOB_VIEW_H
#define SHOAL_OPERATOR_BOARD_JOB_VIEW_H

#include "operator/job/snapshot.h"

struct json;
struct series;

enum { JOB_VIEW_PODS_MAX = 64 };

/* The row. `status` is the newest, which may be about to be written; series may be NULL. The caller
 * owns it. */
struct json *job_view_row(const struct snapshot *snapshot, const struct job_status *status,
                          const struct series *series);
/* Conditions and pods, which only the job's own page has. */
struct json *job_view_more(const struct snapshot *snapshot, const struct job_status *status);
#endif
