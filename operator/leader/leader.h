/* Drives the leader election of lease.h: sends its requests through kube.h and feeds the answers
 * back. Decides nothing. */
#ifndef SHOAL_OPERATOR_LEADER_LEADER_H
#define SHOAL_OPERATOR_LEADER_LEADER_H

#include "base/clock.h"
#include "operator/kube/kube.h"
#include "operator/leader/lease.h"

struct leader;

struct leader_options {
    const char *namespace_, *name; /* of the Lease; copied */
    struct lease_options lease;
};

/* kube and clocks are borrowed and must outlive it. Nothing is sent yet. */
struct leader *leader_open(struct kube *kube, const struct leader_options *options,
                           const struct clocks *clocks);
void leader_close(
    struct leader *leader); /* NULL-safe; cancels requests; does not release the lease */

/* Sends the next request if there is one. Returns in how many milliseconds to call again even if
 * nothing is received; INT64_MAX: only when something is. */
int64_t leader_tick(struct leader *leader);

/* Whether we are the leader now. Ask before each write. */
bool leader_is_held(const struct leader *leader);

/* Releases the lease: leader_tick sends the request, until leader_is_over. Everything that was
 * started as the leader must have ended before. */
void leader_release(struct leader *leader);
bool leader_is_over(const struct leader *leader);

/* The holder as last seen, for messages; "": none. */
const char *leader_holder(const struct leader *leader);
/* Why the last try failed, if it failed in another way than at the last call, else NULL. A try
 * reads the lease, and writes it if it is free; a conflict is no failure. An unreachable server is
 * one failure, whatever the request; each missing permission is one. That its namespace is not
 * there is one as well, with what to do. Lives until the next leader_tick. */
const char *leader_new_failure(struct leader *leader);
#endif
