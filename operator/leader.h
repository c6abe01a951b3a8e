/* Leader election carried out: asks the machine of lease.h what it wants, sends it by kube, and
 * feeds the answers back. No decision is made here. */
#ifndef SHOAL_OPERATOR_LEADER_H
#define SHOAL_OPERATOR_LEADER_H

#include "base/clock.h"
#include "operator/kube.h"
#include "operator/lease.h"

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

/* For people: who holds it as last seen ("": nobody), and why the last try failed (code ERR_NONE:
 * it did not; a conflict is none). A try reads, and writes if the lease may be taken. */
const char *leader_holder(const struct leader *leader);
const struct error *leader_failure(const struct leader *leader);

#ifdef __cplusplus
}
#endif
#endif
