/* A watch carried out: asks the machine of watch.h what it wants, sends it by kube, and feeds the
 * answers back. No decision is made here. */
#ifndef SHOAL_OPERATOR_WATCHER_H
#define SHOAL_OPERATOR_WATCHER_H

#include "operator/kube.h"
#include "operator/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct watcher;

/* kube is borrowed and must outlive it. now_ms is the wall clock: answers come at any time. */
struct watcher *watcher_open(struct kube *kube, const struct watch_options *options,
                             int64_t (*now_ms)(void));
void watcher_close(struct watcher *watcher); /* NULL-safe; cancels what is in flight */

/* Sends what is wanted now. Returns when to call again even if nothing is heard; INT64_MAX: not
 * before something is. */
int64_t watcher_tick(struct watcher *watcher);

/* For questions only: watch_is_synced, watch_failing_since. */
const struct watch *watcher_machine(const struct watcher *watcher);

#ifdef __cplusplus
}
#endif
#endif
