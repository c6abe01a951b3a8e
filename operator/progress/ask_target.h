/* Which pod of a job is asked how the training goes, and what is known of it by then. Pure but for
 * reading JSON. */
#ifndef SHOAL_OPERATOR_PROGRESS_ASK_TARGET_H
#define SHOAL_OPERATOR_PROGRESS_ASK_TARGET_H

#include "operator/job/snapshot.h"

/* Borrowed from the snapshot. */
struct ask_target {
    const char *run;       /* the id that its agents have; "": not known */
    const char *uid;       /* of the pod */
    int32_t restart_count; /* of its containers: another process tells from then on */
    const char *pod, *address;
    int32_t port;
    bool is_agent; /* one has told of itself in this container, to whichever operator */
};

/* The pod of rank 0 while it runs; false: nobody is to be asked. */
bool ask_target_find(const struct snapshot *snapshot, struct ask_target *ret_target);

/* The newest of what was heard (NULL: nothing) and of what rank 0's containers left behind when
 * they ended; false: that is no news to the status. */
bool ask_target_newest(const struct snapshot *snapshot, const struct training *heard,
                       struct training *ret_newest);
#endif
