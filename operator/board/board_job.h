/* A job on the board. Private to the board. */
#ifndef SHOAL_OPERATOR_BOARD_BOARD_JOB_H
#define SHOAL_OPERATOR_BOARD_BOARD_JOB_H

#include "base/series.h"
#include "base/table.h"
#include "base/timeline.h"
#include "operator/board/board.h"

struct board_event {
    int64_t wall_ms;
    enum event_type type;
    char *texts; /* the reason, and behind its end the message */
};

struct board_job {
    struct table_entry entry;
    char *key, *uid;
    char *row, *more; /* as JSON; NULL: not yet */
    bool changed;     /* since the last message */
    int64_t created_ms, completed_ms;
    struct series series;
    const char *unit; /* of the series' rate */
    struct timeline timeline;
    struct board_event events[BOARD_EVENTS_MAX]; /* the newest first */
    int event_count;
    char *detail;         /* as JSON; NULL: nobody looks, or nobody answers */
    int64_t detail_ms;    /* steady clock: when it was told */
    int64_t looked_at_ms; /* likewise: when it was asked for last; 0: never */
};

struct board_job *board_job_open(const char *key);
void board_job_close(struct board_job *job);

/* It is one of so many jobs: the more there are, the fewer points and pieces of its past it keeps,
 * so that all of them take no more than a few MiB. Those of BOARD_WHOLE_JOBS have all. */
enum { BOARD_WHOLE_JOBS = 250 };
void board_job_share(struct board_job *job, size_t jobs);
/* Its status is this now. */
void board_job_told(struct board_job *job, const struct job *told, const struct job_status *status,
                    int64_t now_ms);
void board_job_event(struct board_job *job, const struct action *event, int64_t now_ms);
/* Copies. */
void board_job_show(struct board_job *job, const char *row, const char *more);
/* Takes the text. */
void board_job_detail(struct board_job *job, char *detail, int64_t steady_ms);
/* Lets go details that are too old to be shown. */
void board_job_forget_old_detail(struct board_job *job, int64_t steady_ms);
/* Time goes by: lets go what nobody wants of a job that ended long ago. */
void board_job_rest(struct board_job *job, int64_t now_ms);

/* All of it as JSON. */
void board_job_print(const struct board_job *job, struct str *out);
#endif
