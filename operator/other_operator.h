/* Another operator that works on our jobs by mistake: the training operator, left running. Its
 * writes of a job's status show it; its Lease would not, as it holds none by default, and one that
 * works on other kinds of jobs alone holds it, too. While it writes, we stand aside. */
#ifndef SHOAL_OPERATOR_OTHER_OPERATOR_H
#define SHOAL_OPERATOR_OTHER_OPERATOR_H

#include "operator/apply/executor.h"
#include "operator/cache/cache.h"
#include "operator/stand_aside.h"

struct other_operator {
    struct stand_aside aside;
    char *key;     /* of the job that it wrote first in this pause; NULL: there is no pause */
    char *manager; /* its field manager */
    bool told;     /* the log and that job tell of it */
};

void other_operator_close(struct other_operator *other); /* frees its texts */

/* It wrote the status of this job. Sends nothing. */
void other_operator_wrote(struct other_operator *other, const char *key, const char *manager,
                          int64_t now_ms);

/* For how long yet to do nothing; 0: we work. leading: else nobody needs to be told. Tells it by
 * the log and an event of the job when it begins, and by the log when it ends. */
int64_t other_operator_follow(struct other_operator *other, bool leading, struct cache *cache,
                              struct executor *executor, int64_t now_ms);
#endif
