/* A watch carried out: asks the machine of watch.h what it wants, sends it by kube, and feeds the
 * answers back. No decision is made here. */
#ifndef SHOAL_OPERATOR_KUBE_WATCHER_H
#define SHOAL_OPERATOR_KUBE_WATCHER_H

#include "base/clock.h"
#include "operator/kube/kube.h"
#include "operator/kube/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct watcher;

/* kube and clocks are borrowed and must outlive it. */
struct watcher *watcher_open(struct kube *kube, const struct watch_options *options,
                             const struct clocks *clocks);
void watcher_close(struct watcher *watcher); /* NULL-safe; cancels what is in flight */

/* Sends what is wanted now. Returns in how many milliseconds to call again even if nothing is
 * heard; INT64_MAX: not before something is. */
int64_t watcher_tick(struct watcher *watcher);

/* watch_relist_if_silent, and what follows from it. */
bool watcher_relist_if_silent(struct watcher *watcher, int64_t since_ms);

/* For questions only: watch_is_synced, watch_failing_since. */
const struct watch *watcher_machine(const struct watcher *watcher);

#ifdef __cplusplus
}
#endif
#endif
