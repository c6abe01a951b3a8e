/* What the executor keeps of a job from one plan to the next, beyond the job's status. An operator
 * that restarts does without it. */
#ifndef SHOAL_OPERATOR_APPLY_JOB_RECORD_H
#define SHOAL_OPERATOR_APPLY_JOB_RECORD_H

#include "base/table.h"
#include "operator/apply/event_budget.h"
#include "operator/apply/expectations.h"
#include "operator/job/types.h"

enum { UNCONFIRMED_MAX = 4 };

enum { HELD_QUIET_MS = 150, HELD_MAX_MS = 1000 };

/* Status writes that failed although one of them may have succeeded: its answer was lost. Each
 * retry writes another status, as its timestamps differ. */
struct unconfirmed {
    struct arena *arena; /* owns all of this */
    struct job_status before;
    struct job_status tried[UNCONFIRMED_MAX]; /* the first ones, and the last one */
    int count;
};

/* A status that waits, or could not be written since, and completes replicas. */
struct unwritten {
    struct arena *arena; /* owns all of this */
    struct job_status before, after;
};

/* What the first status write of a job was to be written over: there was another version. */
struct conflict {
    struct arena *arena; /* owns all of this */
    const char *version; /* that was seen */
    struct job_status status;
};

struct job_record {
    struct table_entry entry;
    const char *key, *uid; /* of the job, in `texts`: another job may have taken its name */
    struct event_budget budget;
    struct expectations *expect; /* NULL: the cache shows all changes */
    int64_t expect_until_ms;     /* steady clock; valid once the plan is over */
    struct conflict *conflict;   /* not judged yet; NULL: none */
    int64_t pods_until_ms;       /* how long passes await pods, steady clock; 0: the last did not */
    char *refused;               /* see executor_refused */
    /* Since when a status write waits (job_status_may_wait), and when it had news last: steady
     * clock. Valid while it is `held`. */
    int64_t held_since_ms, held_news_ms;
    struct unwritten *unwritten;     /* NULL: none completes a replica */
    uint64_t failure;                /* hash of the last plan's error message; 0: it did not fail */
    struct unconfirmed *unconfirmed; /* NULL: none */
    /* The history, if the API server prunes it: its CustomResourceDefinition is of
     * another version. */
    struct arena *kept_arena;     /* of `kept` */
    struct job_status *kept;      /* the last status written whose history was pruned; NULL: none */
    struct arena *restored_arena; /* of what job_record_restore_history returned last */
    bool proven;         /* a status was written: the job was not of the past (struct snapshot) */
    bool stored_invalid; /* the API server refused the status as it has it: we write ours instead */
    bool relisted; /* the missing objects were listed again (executor_options.unseen_change) */
    bool held;
    char texts[];
};

/* The record of the job with this UID; NULL: there is none. */
struct job_record *job_record_find(const struct table *records, const char *key, const char *uid);
/* The same, created if there is none. Forgets another job of this key. */
struct job_record *job_record_take(struct table *records, const char *key, const char *uid);
void job_record_forget(struct table *records, const char *key);
/* Frees the table too. */
void job_record_free_all(struct table *records);

void job_record_refuse(struct job_record *record, const char *text); /* copies */
bool job_record_clear_refusal(struct job_record *record); /* returns whether anything was refused */

/* Adds a write to those over the same status `before`; forgets those over another one. Copies. */
void job_record_add_unconfirmed(struct job_record *record, const struct job_status *before,
                                const struct job_status *tried);
void job_record_drop_unconfirmed(struct job_record *record);
/* Compares the unconfirmed writes with the status that job_record_restore_history returned. Returns
 * whether one of them succeeded; *ret_before is then the status before it, in `arena`. Forgets the
 * writes once one is confirmed or the status has changed otherwise. What waits to be written over
 * the status before a confirmed one waits over that, unless all replicas begin anew with it. */
bool job_record_confirm_write(struct job_record *record, const struct job_status *seen,
                              struct arena *arena, struct job_status *ret_before);

/* The first status write met another version than this one, with this status. Copies; NULL is no
 * version. */
void job_record_set_conflict(struct job_record *record, const char *version,
                             const struct job_status *status);
void job_record_drop_conflict(struct job_record *record);
/* Whether the job that is seen now (uid NULL: none) is another one, or has another status: not only
 * its spec has changed. Forgets the conflict, but where the job is still seen in that version. */
bool job_record_judge_conflict(struct job_record *record, const char *uid, const char *version,
                               const struct job_status *seen);

/* The status was written, and its history came back or was pruned. Copies. Returns whether it was
 * pruned for the first time. */
bool job_record_set_history_kept(struct job_record *record, const struct job_status *written,
                                 bool came_back);
/* Another operator may have counted: no history is restored any more, and no job is proven. */
void job_record_prune_histories(struct table *records);
/* `seen`, with its history restored if the API server pruned it. Lives until the next call. */
const struct job_status *job_record_restore_history(struct job_record *record,
                                                    const struct job_status *seen);

/* A pass found what may wait to be written, and is not the last one's: how many milliseconds it
 * waits still, 0: no more. The wait ends HELD_QUIET_MS after the last news, and HELD_MAX_MS after
 * the first: a status is never older. may_wait false: nothing waits any more. */
int64_t job_record_hold_ms(struct job_record *record, bool may_wait, int64_t steady_ms);

/* The status `after` waits to be written over `before`, and completes replicas. Copies. */
void job_record_keep_completed(struct job_record *record, const struct job_status *before,
                               const struct job_status *after);
void job_record_drop_completed(struct job_record *record);
/* The history kept over this very status; NULL: none. Lives until one of these three functions is
 * called for the job. Forgets one that was kept over another status. */
const struct history *job_record_completed(struct job_record *record,
                                           const struct job_status *seen);

/* failure: the last plan's error message; NULL: it succeeded. Returns whether the plan failed in
 * another way than the one before it. */
bool job_record_set_failure(struct job_record *record, const char *failure);
#endif
