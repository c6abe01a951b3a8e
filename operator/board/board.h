/* What the live page shows (docs/page.md): of each job its row, its events and how it went so far.
 * The loop tells what each pass has found, and the server's thread answers from it. They share a
 * mutex: the loop waits while an answer is copied, 1 ms for the 3 MB of 5,000 rows on a core of its
 * own, but not while it is sent. Bounded: jobs, and what is kept of each. All functions take NULL
 * for a board that nobody can look at. */
#ifndef SHOAL_OPERATOR_BOARD_BOARD_H
#define SHOAL_OPERATOR_BOARD_BOARD_H

#include "base/clock.h"
#include "base/str.h"
#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

enum {
    BOARD_JOBS_MAX = 5000,
    BOARD_EVENTS_MAX = 10,            /* of a job */
    BOARD_MESSAGES_MAX = 16,          /* of what has changed at once; more: ask again for all */
    BOARD_DETAILS_MAX = 16,           /* jobs whose details are kept at once */
    BOARD_DETAIL_EVERY_MS = 4 * 1000, /* asks for a job's details are at least so far apart */
    BOARD_DETAIL_KEPT_MS = 30 * 1000, /* details that are older are not shown */
};

struct board;

struct board *board_open(const struct clocks *clocks);
void board_close(struct board *board);

/* ---- the loop's ---- */

/* A pass over the job has made this plan of this snapshot. key: "namespace/name". Copies. */
void board_told(struct board *board, const char *key, const struct snapshot *snapshot,
                const struct plan *plan);
void board_forget(struct board *board, const char *key);
/* Another replica leads: what was told gets old. */
void board_forget_all(struct board *board);

/* Who works on the jobs, and how many there are. Copies. */
void board_set_operator(struct board *board, bool leading, const char *leader, size_t jobs);
/* Where the pods of the operators are, for the command that reaches the one that leads. Copies. */
void board_set_namespace(struct board *board, const char *namespace_);

/* A job whose page somebody has asked for, and whose details are missing or old; NULL: none. They
 * are to be asked for; each is told once for a look. The caller frees it. */
char *board_looked_at(struct board *board);
/* An agent has answered this for the details of the job (TRAINING_DETAIL_PATH). Copies what the
 * page knows of it. */
void board_detail(struct board *board, const char *key, const char *text, size_t bytes);

/* Sends the messages for those who listen: what has changed since the last call, or a sign of life.
 * heard: somebody listens; else what has changed is only counted. */
void board_send(struct board *board, bool heard,
                void (*send)(void *context, const char *text, size_t bytes), void *context);

/* ---- any thread's ---- */

/* For httpd_answer_below of PAGE_JOBS_PATH. context: the board. */
bool board_answer(void *context, const char *path, struct str *body);
#endif
