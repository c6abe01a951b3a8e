/* One pass over one job: what the cache shows and what the executor remembers become a plan. Sends
 * nothing and does not know when it is called: that is the controller's. */
#ifndef SHOAL_OPERATOR_PASS_H
#define SHOAL_OPERATOR_PASS_H

#include "operator/apply/executor.h"
#include "operator/cache/cache.h"

struct pass_options {
    struct reconcile_options reconcile;
    const char *list_forbidden;   /* of struct snapshot */
    const struct training *heard; /* what the job's training told last; NULL: nothing */
    bool quiet;                   /* of struct snapshot */
    bool pods_behind;             /* the job was written behind all that the cache shows of pods */
    bool pods_away;               /* and their watch tells nothing just now */
    int64_t now_ms;               /* wall clock */
};

/* Its texts live as long as the arena, and until the cache is fed and the executor called again. */
struct pass {
    struct snapshot snapshot; /* that the plan was made from */
    const struct plan *plan;  /* NULL: too early, see early_ms; or is_of_the_past */
    int64_t early_ms;    /* the cache does not show the last plan's changes, or pods as they were
                            when another operator wrote the status: ask again in so many */
    bool is_of_the_past; /* as what was listed: pass again, once that is listed anew */
    bool confirmed;      /* a status write that was reported as failed has succeeded */
    struct job_status before_confirmed; /* then: the status before it */
    int64_t hold_ms; /* the plan writes only what may wait: pass again in so many instead; 0: carry
                        it out */
    bool idle;       /* the plan asks for nothing but another pass */
    int64_t requeue_ms; /* then: at that wall clock time; 0: none */
    bool again;         /* then: what was refused matters no more, and another pass is to say so */
};

/* job: acquired from the cache. */
struct pass pass_over(const struct cache *cache, struct executor *executor, const char *key,
                      const struct cached_job *job, const struct pass_options *options,
                      struct arena *arena);
#endif
