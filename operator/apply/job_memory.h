/* What the executor remembers of a job from one plan to the next. Lost when the operator ends, and
 * nothing is the worse for it. */
#ifndef SHOAL_OPERATOR_APPLY_JOB_MEMORY_H
#define SHOAL_OPERATOR_APPLY_JOB_MEMORY_H

#include "base/table.h"
#include "operator/apply/event_budget.h"
#include "operator/apply/expect.h"
#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { UNCONFIRMED_MAX = 4 };

/* Status writes that failed, and of which one may have been done all the same: its answer was lost.
 * A next try is another status, as its times are others. */
struct unconfirmed {
    struct arena *arena; /* of all of it */
    struct job_status before;
    struct job_status tried[UNCONFIRMED_MAX]; /* the first of them, and the last one */
    int count;
};

struct job_memory {
    struct table_entry entry;
    char *key;
    char *uid; /* of the job: another one of its name is another job */
    struct event_budget budget;
    struct expect *expect;   /* NULL: the view has shown all */
    int64_t expect_until_ms; /* steady clock; holds once the plan is over */
    bool relisted;           /* what it misses was asked for anew (executor_options.unseen) */
    char *refused;           /* see executor_refused */
    uint64_t failure;        /* hash of how its last plan failed; 0: it did not */
    struct unconfirmed *unconfirmed; /* NULL: none */
    /* A CustomResourceDefinition that is not this version's does not keep all of status.history. */
    struct arena *kept_arena;     /* of `kept` */
    struct job_status *kept;      /* as last written, where its history was not kept; NULL: it is */
    struct arena *restored_arena; /* of what job_memory_restore_history gave last */
};

/* Of this very job; NULL: nothing is remembered. */
struct job_memory *job_memory_find(const struct table *memories, const char *key, const char *uid);
/* The same, made if there is none; what another job of this key left is forgotten. */
struct job_memory *job_memory_take(struct table *memories, const char *key, const char *uid);
void job_memory_forget(struct table *memories, const char *key);
/* Frees the table too. */
void job_memory_free_all(struct table *memories);

void job_memory_refuse(struct job_memory *memory, const char *text); /* copies */
bool job_memory_clear_refusal(struct job_memory *memory); /* returns whether anything was refused */

/* Copies. Joins what else was tried over the same status; takes the place of any other doubt. */
void job_memory_add_unconfirmed(struct job_memory *memory, const struct job_status *before,
                                const struct job_status *tried);
void job_memory_drop_unconfirmed(struct job_memory *memory);
/* What is seen, as job_memory_restore_history gave it, settles the doubt. Returns whether the write
 * was done; *ret_before is then what it changed, in `arena`, and its history may be recalled. */
bool job_memory_confirm_write(struct job_memory *memory, const struct job_status *seen,
                              struct arena *arena, struct job_status *ret_before);

/* The status was written, and its history came back or did not. Copies. Returns whether it has not
 * for the first time. */
bool job_memory_set_history_kept(struct job_memory *memory, const struct job_status *written,
                                 bool came_back);
/* Others may count from now on: no job's history is recalled. */
void job_memory_drop_histories(struct table *memories);
/* The status as it would be seen had its history been kept whole; `seen` itself if it was. Lives
 * until the next call. */
const struct job_status *job_memory_restore_history(struct job_memory *memory,
                                                    const struct job_status *seen);

/* How a plan ended, NULL: well. Returns whether it failed otherwise than the one before it. */
bool job_memory_set_failure(struct job_memory *memory, const char *failure);

#ifdef __cplusplus
}
#endif
#endif
