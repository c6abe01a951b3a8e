/* Leader election carried out: asks the machine of lease.h what it wants, sends it by kube, and
 * feeds the answers back. No decision is made here. */
#ifndef SHOAL_OPERATOR_LEADER_LEADER_H
#define SHOAL_OPERATOR_LEADER_LEADER_H

#include "base/clock.h"
#include "operator/kube/kube.h"
#include "operator/leader/lease.h"

#ifdef __cplusplus
extern "C" {
#endif

struct leader;

struct leader_options {
    const char *namespace_, *name; /* of the Lease; copied */
    struct lease_options lease;
};

/* kube and clocks are borrowed and must outlive it. Nothing is sent yet. */
struct leader *leader_open(struct kube *kube, const struct leader_options *options,
                           const struct clocks *clocks);
void leader_close(struct leader *leader); /* NULL-safe; cancels what is in flight, frees nothing */

/* Sends what is wanted now. Returns in how many milliseconds to call again even if nothing is
 * heard; INT64_MAX: not before something is. */
int64_t leader_tick(struct leader *leader);

/* Whether we lead at this moment: to be asked before each thing that only the leader may do. */
bool leader_is_held(const struct leader *leader);

/* Gives the lease up: leader_tick sends what that takes until leader_is_over. What was started as
 * the leader must have ended. */
void leader_release(struct leader *leader);
bool leader_is_over(const struct leader *leader);

/* For people: who holds it as last seen; "": nobody. */
const char *leader_holder(const struct leader *leader);
/* Why the last try failed, if that is another trouble than at the last call, else NULL. A try
 * reads, and writes if the lease may be taken; a conflict is no failure. A server that is gone is
 * one trouble, whatever was asked of it; of rights each that is missing is one, which stays so with
 * every try. Until the next leader_tick(). */
const char *leader_new_failure(struct leader *leader);

#ifdef __cplusplus
}
#endif
#endif
