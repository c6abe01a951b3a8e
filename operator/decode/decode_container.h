/* The part of decode_pod that reads the statuses of a pod's containers, and what follows from those
 * alone: which ends were failures, how many, and which was the last. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_CONTAINER_H
#define SHOAL_OPERATOR_DECODE_DECODE_CONTAINER_H

#include "base/json_read.h"
#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct container_end {
    bool present;
    struct optional exit_code;
    const char *reason;
    int64_t finished_ms; /* 0: nobody knows */
};

struct container_wait {
    const char *reason, *message;
};

struct container_status {
    const char *name;
    struct optional restarts;
    struct container_end end, before; /* now; before its last restart */
    struct container_wait wait;       /* all NULL: it does not wait */
    bool own; /* the operator's, which waits for the master: no end of it is the user's failure */
};

struct container_statuses {
    struct container_status *items;
    size_t count;
};

/* Of a struct container_status. */
extern const struct json_field container_status_fields[];

/* Marks as the operator's own those that `names` has, with commas between them. */
void container_mark_own(struct container_statuses *statuses, const char *names);

/* Whether one has ended, the operator's own apart. */
bool container_any_ended(const struct container_statuses *statuses);
/* Whether all have ended with 0, so that nothing but sidecars is left to end. */
bool container_all_done(const struct container_statuses *statuses);
/* Whether an own one gave up. */
bool container_own_failed(const struct container_statuses *statuses);

/* Restarts in place so far, and ends that one is still to follow: not those since `deleted_ms`,
 * when the pod's deletion was asked for, if that is not 0. */
int32_t container_restarts(const struct container_statuses *statuses);
int32_t container_restarts_due(const struct container_statuses *statuses, int64_t deleted_ms);

/* Of these the last end, if it was later than *ret_end of *ret_ms (0: nobody knows), or in a pod
 * that `failed` the end that made it fail. */
void container_last_end(const struct container_statuses *statuses, bool failed, int64_t deleted_ms,
                        struct pod_end *ret_end, int64_t *ret_ms);

#ifdef __cplusplus
}
#endif
#endif
