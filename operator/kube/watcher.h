/* Drives the state machine of watch.h: sends its requests through kube.h and feeds the answers
 * back. Decides nothing. */
#ifndef SHOAL_OPERATOR_KUBE_WATCHER_H
#define SHOAL_OPERATOR_KUBE_WATCHER_H

#include "base/clock.h"
#include "operator/kube/kube.h"
#include "operator/kube/watch.h"

struct watcher;

/* kube and clocks are borrowed and must outlive it. */
struct watcher *watcher_open(struct kube *kube, const struct watch_options *options,
                             const struct clocks *clocks);
void watcher_close(struct watcher *watcher); /* NULL-safe; cancels requests */

/* Sends the next request if there is one. Returns in how many milliseconds to call again even if
 * nothing is received; INT64_MAX: only when something is. */
int64_t watcher_tick(struct watcher *watcher);

/* Does what watch_relist_if_silent asks for. */
bool watcher_relist_if_silent(struct watcher *watcher, int64_t since_ms);
/* Does what watch_relist asks for. */
bool watcher_relist(struct watcher *watcher);

/* For watch_is_synced, watch_failing_since and the like. */
const struct watch *watcher_machine(const struct watcher *watcher);
#endif
