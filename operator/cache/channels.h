/* All that the operator watches: jobs, pods and services; PodGroups with a gang scheduler; and
 * autoscalers, in the newest version of their API that the server knows, as long as we may read
 * them. What is heard is fed to the store; what fails is told to people, trouble with the server as
 * a whole once and not for each kind. */
#ifndef SHOAL_OPERATOR_CACHE_CHANNELS_H
#define SHOAL_OPERATOR_CACHE_CHANNELS_H

#include "base/clock.h"
#include "operator/cache/store.h"
#include "operator/kube/kube.h"

#ifdef __cplusplus
extern "C" {
#endif

struct channels;

struct channels_options {
    const char *namespace_; /* whose jobs; NULL: all */
    enum gang_scheduler gang;
    uint64_t seed; /* of all jitter */
    const struct clocks *clocks;
};

/* kube, store, clocks and options' texts are borrowed and must outlive it. */
struct channels *channels_open(struct kube *kube, struct store *store,
                               const struct channels_options *options);
void channels_close(struct channels *channels); /* NULL-safe; cancels what is in flight */

/* Does all that can be done now. Returns in how many milliseconds to call again even if nothing is
 * heard; INT64_MAX: not before something is. */
int64_t channels_tick(struct channels *channels);

/* What was changed at since_ms (steady clock) in objects of this kind has not been heard of. If
 * nothing has been heard of the kind at all since then, it is listed again, which is told. Returns
 * whether it is being listed. */
bool channels_suspect(struct channels *channels, enum store_kind kind, int64_t since_ms);

/* Whether all that is watched has been seen once. */
bool channels_are_ready(const struct channels *channels);

/* The plural of a kind that is watched, and whether it is failing just now; NULL: it is not
 * watched.
 */
const char *channels_watched(const struct channels *channels, enum store_kind kind,
                             bool *ret_failing);

/* Why the children of jobs cannot be seen, in words for people: we may not list pods, services or
 * the gang scheduler's PodGroups, and that not only for a moment. NULL: we may, or of jobs nothing
 * is known either. */
const char *channels_blind(const struct channels *channels);

/* The version of autoscalers that are watched; NULL: there are none on this server, or they are not
 * ours to read. Settled when the channels are ready. */
const char *channels_autoscaling(const struct channels *channels);

#ifdef __cplusplus
}
#endif
#endif
