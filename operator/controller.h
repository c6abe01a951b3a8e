/* The operator between two waits: what was heard has been fed to the cache, which marked jobs; now
 * each due job gets one pass (reconcile), and its plan is carried out over the API. One job has at
 * most one plan under way. Never waits: its owner polls, and calls controller_run_once. */
#ifndef SHOAL_OPERATOR_CONTROLLER_H
#define SHOAL_OPERATOR_CONTROLLER_H

#include "base/clock.h"
#include "operator/job/snapshot.h"
#include "operator/kube/kube.h"
#include "operator/manifest/pod.h"
#include "operator/metrics.h"

struct controller;
struct init_template;

struct controller_options {
    const char *namespace_; /* whose jobs; NULL: all */
    int64_t default_backoff_limit;
    struct reconcile_options reconcile;
    struct pod_options pod;
    const struct init_template *init; /* NULL: workers get no init container */
    uint64_t seed;                    /* of all jitter */
    const struct clocks *clocks;
};

/* kube, clocks and options' texts are borrowed and must outlive it. Nothing is sent yet. */
struct controller *controller_open(struct kube *kube, const struct controller_options *options);
void controller_close(struct controller *controller); /* NULL-safe; cancels what is in flight */

/* Does all that can be done now. `leading`: jobs may be worked on; without it only the caches are
 * kept, so that whoever takes over can begin at once, and plans under way are dropped. Returns in
 * how many milliseconds to call again even if nothing is heard; INT64_MAX: not before
 * something is. */
int64_t controller_run_once(struct controller *controller, bool leading);

/* Whether all that is watched has been seen once. */
bool controller_is_ready(const struct controller *controller);

/* Fills in what the controller knows of the view. */
void controller_view(const struct controller *controller, struct metrics_view *view);
const struct metrics *controller_metrics(const struct controller *controller);
#endif
