/* Reads the statuses of a pod's containers for decode_pod: which terminations were failures, how
 * many there were, and which was the last. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_CONTAINER_H
#define SHOAL_OPERATOR_DECODE_DECODE_CONTAINER_H

#include "base/json_read.h"
#include "operator/job/types.h"

struct container_end {
    bool present;
    struct optional exit_code;
    const char *reason;
    const char *message; /* its termination message; NULL: none */
    int64_t finished_ms; /* 0: not known */
};

struct container_wait {
    const char *reason, *message;
};

struct container_status {
    const char *name;
    struct optional restarts;
    struct container_end end, before; /* the current termination; the one before the last restart */
    int64_t started_ms;               /* it runs since then; 0: it does not */
    struct container_wait wait;       /* all NULL: the container is not waiting */
    bool own; /* the operator's own, which waits for the master: its failures are not the user's */
};

struct container_statuses {
    struct container_status *items;
    size_t count;
};

/* Of container `pytorch`, when it ended last: the last line of its termination message, in the
 * arena; NULL: none. */
const char *container_last_line(const struct container_statuses *statuses, struct arena *arena);

/* Since when container `pytorch` runs; 0: it does not. */
int64_t container_started_ms(const struct container_statuses *statuses);

/* Of a struct container_status. */
extern const struct json_field container_status_fields[];

/* Marks the containers in `names`, a list with commas, as the operator's own. */
void container_mark_own(struct container_statuses *statuses, const char *names);

/* Whether a container has terminated, other than the operator's own. */
bool container_any_ended(const struct container_statuses *statuses);
/* Whether all have terminated with 0, so that only sidecars are left. */
bool container_all_done(const struct container_statuses *statuses);
/* Whether one of the operator's own has failed. */
bool container_own_failed(const struct container_statuses *statuses);

/* The number of restarts in place, plus the failures that the kubelet will still restart. Failures
 * after `deleted_ms`, when the pod's deletion was requested, do not count; 0: it was not. */
int32_t container_restarts(const struct container_statuses *statuses);
int32_t container_restarts_due(const struct container_statuses *statuses, int64_t deleted_ms);

/* The last termination of these containers, if it is later than *ret_end at *ret_ms (0: not known).
 * In a pod that `failed` it is the one that made the pod fail. */
void container_last_end(const struct container_statuses *statuses, bool failed, int64_t deleted_ms,
                        struct pod_end *ret_end, int64_t *ret_ms);
#endif
